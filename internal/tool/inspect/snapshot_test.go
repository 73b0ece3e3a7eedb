package inspect

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
)

func TestRenewalIsSeenByTheClockOfTheLooksAndNotByTheTTLAlone(t *testing.T) {
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

func TestALeaseIsRenewedWhenItWasSeenToBeSetAnew(t *testing.T) {
	t.Parallel()
	look := func(second int, owner, count string, left time.Duration) Snapshot {
		at := time.Unix(int64(second), 0)
		return Snapshot{Asked: at, Answered: at.Add(10 * time.Millisecond), TTL: left, Holders: []Holder{{Owner: owner, Count: Count(count)}}}
	}
	const s = time.Second
	for what, c := range map[string]struct {
		looks []Snapshot
		want  string
	}{
		"once":             {[]Snapshot{look(0, "a", "1", 30*s)}, RenewedUnknown},
		"not due yet":      {[]Snapshot{look(0, "a", "1", 30*s), look(10, "a", "1", 20*s)}, RenewedUnknown},
		"not when due":     {[]Snapshot{look(0, "a", "1", 30*s), look(11, "a", "1", 19*s)}, RenewedNo},
		"set anew":         {[]Snapshot{look(0, "a", "1", 20*s), look(1, "a", "1", 29*s)}, RenewedYes},
		"set anew, not up": {[]Snapshot{look(0, "a", "1", 20*s), look(1, "a", "1", 20*s)}, RenewedYes},
		"set anew before":  {[]Snapshot{look(0, "a", "1", 20*s), look(1, "a", "1", 29*s), look(2, "a", "1", 28*s)}, RenewedYes},
		"entered again":    {[]Snapshot{look(0, "a", "1", 20*s), look(1, "a", "2", 30*s)}, RenewedUnknown},
		"another's":        {[]Snapshot{look(0, "a", "1", 20*s), look(1, "b", "1", 30*s)}, RenewedUnknown},
		"without a lease":  {[]Snapshot{look(0, "a", "1", redlatch.NoTTL)}, ""},
		"free meanwhile": {
			[]Snapshot{look(0, "a", "1", 20*s), {}, look(2, "a", "1", 30*s)}, RenewedUnknown,
		},
	} {
		var r Renewal
		for _, l := range c.looks {
			r.See(&l)
		}
		require.Equal(t, c.want, r.Known(), what)
	}
}

func TestALeaseThatIsNotRenewedAnyMoreIsNotCalledRenewed(t *testing.T) {
	t.Parallel()
	const s = time.Second
	var r Renewal
	look := func(second int, count string, left time.Duration) string {
		at := time.Unix(int64(second), 0)
		r.See(&Snapshot{Asked: at, Answered: at, TTL: left, Holders: []Holder{{Owner: "A", Count: Count(count)}}})
		return r.Known()
	}
	require.Equal(t, RenewedUnknown, look(0, "1", 25*s))
	require.Equal(t, RenewedUnknown, look(4, "1", 21*s))
	require.Equal(t, RenewedYes, look(5, "1", 30*s))
	require.Equal(t, RenewedYes, look(15, "1", 20*s))
	require.Equal(t, RenewedNo, look(16, "1", 19*s), "eleven seconds after a lease of thirty was set")
	require.Equal(t, RenewedYes, look(17, "1", 30*s))
	require.Equal(t, RenewedUnknown, look(18, "2", 30*s), "entered again")
	require.Empty(t, look(19, "2", redlatch.NoTTL))
}

func TestPartHasEachWaiterThatStaysOnce(t *testing.T) {
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
