package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
)

func TestRenewalDetectionUsesElapsedTime(t *testing.T) {
	t.Parallel()
	at := func(sent, answered, left time.Duration) *Snapshot {
		zero := time.Unix(0, 0)
		return &Snapshot{TTL: left, Asked: zero.Add(sent), Answered: zero.Add(answered)}
	}
	first := at(0, 100*time.Millisecond, 10*time.Second)
	for _, c := range []struct {
		later *Snapshot
		rose  bool
	}{
		{at(time.Second, time.Second, 9*time.Second), false},
		{at(time.Second, time.Second, 9100*time.Millisecond), false}, // it was looked at after 100 ms
		{at(time.Second, time.Second, 9200*time.Millisecond), true},
		{at(4*time.Second, 4*time.Second, 8*time.Second), true}, // renewed between the looks
		{at(time.Second, time.Second, 30*time.Second), true},
		{at(time.Second, 9*time.Second, 5*time.Second), false},
		{at(20*time.Second, 20*time.Second, redlatch.NoTTL), false},
	} {
		require.Equal(t, c.rose, Renewed(first.TTL, c.later.TTL, c.later.Asked.Sub(first.Answered)), "%v", c.later.TTL)
	}
	require.Equal(t, 11*time.Second, RenewalDue(30*time.Second))
}

func TestRenewalFollowsOneHold(t *testing.T) {
	t.Parallel()
	const s = time.Second
	type seen struct {
		second       int
		owner, count string
		left         time.Duration
		want         string
	}
	for what, looks := range map[string][]seen{
		"not due, and not when due": {{0, "a", "1", 30 * s, RenewedUnknown}, {10, "a", "1", 20 * s, RenewedUnknown}, {11, "a", "1", 19 * s, RenewedNo}},
		"set anew, not up":          {{0, "a", "1", 20 * s, RenewedUnknown}, {1, "a", "1", 20 * s, RenewedYes}},
		"set anew, until it is due again": {
			{0, "a", "1", 25 * s, RenewedUnknown}, {4, "a", "1", 21 * s, RenewedUnknown}, {5, "a", "1", 30 * s, RenewedYes},
			{15, "a", "1", 20 * s, RenewedYes}, {17, "a", "1", 18 * s, RenewedNo}, {18, "a", "1", 30 * s, RenewedYes},
			{19, "a", "2", 30 * s, RenewedUnknown}, {20, "a", "2", redlatch.NoTTL, ""},
		},
		"another's":      {{0, "a", "1", 20 * s, RenewedUnknown}, {1, "b", "1", 30 * s, RenewedUnknown}},
		"free meanwhile": {{0, "a", "1", 20 * s, RenewedUnknown}, {1, "", "", 0, ""}, {2, "a", "1", 30 * s, RenewedUnknown}},
	} {
		var r Renewal
		for _, l := range looks {
			at := time.Unix(int64(l.second), 0)
			now := Snapshot{Asked: at, Answered: at.Add(10 * time.Millisecond), TTL: l.left}
			if l.owner != "" {
				now.Holders = []Holder{{Owner: l.owner, Count: Count(l.count)}}
			}
			r.See(&now)
			require.Equal(t, l.want, r.Known(), "%s at %d s", what, l.second)
		}
	}
}

func TestListenersCountsConnectionsInOwnerOrder(t *testing.T) {
	t.Parallel()
	client, err := redlatch.New(redistest.Mini(t).Server.Dial)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	t.Cleanup(func() {
		cancel()
		waiting.Wait()
		require.NoError(t, client.Close())
	})
	lock := rfairlock.New(client, "job")
	_, err = lock.Lock(ctx)
	require.NoError(t, err)
	waiting.Go(func() { _, _ = lock.Lock(ctx) })
	require.EventuallyWithT(t, func(c *assert.CollectT) { // it subscribes after it has queued
		queue, _, err := Part{Name: "job", First: 1, Last: 1}.Read(ctx, client)
		require.NoError(c, err)
		require.Len(c, queue, 1)
		counts, err := Listeners(ctx, client, "job", "nobody:1", queue[0].Text, "nobody:2")
		require.NoError(c, err)
		require.Equal(c, []int64{0, 1, 0}, counts)
	}, 10*time.Second, time.Millisecond)
	_, err = Listeners(ctx, client, "", "nobody:1")
	require.ErrorIs(t, err, redlatch.ErrInvalid)
	var about *redlatch.LockError
	require.ErrorAs(t, err, &about)
}

func TestPartListsRemainingWaitersOnce(t *testing.T) {
	t.Parallel()
	for _, at := range []Part{{First: 1, Last: 10_000}, {First: 1, Last: 700}, {First: 301, Last: 900}} {
		for _, length := range []int{0, 1, placesAtOnce, placesAtOnce + 1, 1000} {
			var queue []string
			for i := range length {
				queue = append(queue, fmt.Sprint(i))
			}
			begun := slices.Clone(queue[min(at.First-1, length):min(at.Last, length)])
			reads := 0
			read, _, err := at.read(func(first, n int) (part []admin.Waiter, waiting int, err error) {
				for _, owner := range queue[min(first-1, len(queue)):min(first-1+n, len(queue))] {
					part = append(part, admin.Waiter{Text: owner})
				}
				waiting = len(queue)
				if reads++; at.First == 1 {
					queue = queue[min(37, len(queue)):]
				}
				if n := len(queue); n > 20 {
					queue = slices.Delete(queue, n-11, n-7)
				}
				queue = append(queue, fmt.Sprint("new ", reads))
				return part, waiting, nil
			})
			require.NoError(t, err)
			var owners []string
			for _, w := range read {
				owners = append(owners, w.Text)
			}
			require.LessOrEqual(t, reads, 1+(length+placesAtOnce-1)/placesAtOnce)
			for _, owner := range begun {
				if slices.Contains(queue, owner) {
					require.Contains(t, owners, owner, "%v of %d", at, length)
				}
			}
			unique := slices.Compact(slices.Sorted(slices.Values(owners)))
			require.Len(t, owners, len(unique), "%v of %d", at, length)
		}
	}
	failed := errors.New("failed")
	_, _, err := Part{First: 1, Last: 10}.read(func(int, int) ([]admin.Waiter, int, error) { return nil, 0, failed })
	require.ErrorIs(t, err, failed)
}
