package engine

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/transport"
)

func TestNextOwnerIsUnused(t *testing.T) {
	t.Parallel()
	e, _ := engineOver(t, &faketransport.Fake{})
	for n := range int64(3) {
		require.Equal(t, codec.NewOwner(e.ClientID, n+1), e.NextOwner())
	}
}

func TestLossMarginIsTenthOfLeaseCappedAtSecond(t *testing.T) {
	t.Parallel()
	e, _ := engineOver(t, &faketransport.Fake{})
	require.Equal(t, 300*time.Millisecond, e.LossMargin(3*time.Second))
	require.Equal(t, time.Second, e.LossMargin(10*time.Second))
	require.Equal(t, time.Second, e.LossMargin(time.Hour))
	e.Margin = 2 * time.Second
	require.Equal(t, 2*time.Second, e.LossMargin(time.Hour))
	require.Equal(t, time.Second, e.LossMargin(time.Second), "never more than there is")
}

type upper struct{}

func (upper) Map(name string) string   { return "fleet:" + name }
func (upper) Unmap(name string) string { return name[len("fleet:"):] }

func TestNamesAreCheckedBeforeAndAfterMapping(t *testing.T) {
	t.Parallel()
	e, _ := engineOver(t, &faketransport.Fake{})
	key, err := e.Map("orders")
	require.NoError(t, err)
	require.Equal(t, "orders", key)
	e.Mapper = upper{}
	key, err = e.Map("orders")
	require.NoError(t, err)
	require.Equal(t, "fleet:orders", key)
	for _, bad := range []string{"", "\xff"} {
		_, err = e.Map(bad)
		require.ErrorIs(t, err, limits.ErrInvalid)
	}
}

var testRenewal = watchdog.Renewal{Fill: luasrc.FillRenew, Renewed: reply.RenewedAt}

func leasesOf(keys ...string) []*watchdog.Lease {
	var out []*watchdog.Lease
	for i, k := range keys {
		out = append(out, &watchdog.Lease{
			Key: k, Owner: "me:" + k, TTL: testLease, TTLArg: testLease.Milliseconds() + int64(i),
			Renewal: &testRenewal, Holder: ignoring{},
		})
	}
	return out
}

func TestRenewalIsOneUrgentScriptForAllLocks(t *testing.T) {
	t.Parallel()
	f := &faketransport.Fake{}
	e, _ := engineOver(t, f)
	var held []bool
	var err error
	leases := leasesOf("a", "b", "c")
	leases[2].Fixed = true // it is not prolonged
	e.renew(leases, func(h []bool, e error) { held, err = h, e })
	c := f.Last(t)
	require.Equal(t, "renew", c.Name)
	require.Equal(t, 3, c.Call.NumKeys)
	require.True(t, c.Call.Urgent && c.Call.Vital, "also before releases")
	require.Equal(t, []any{"a", "b", "c", "me:a", int64(30000), "me:b", int64(30001), "me:c", int64(1)}, c.Call.Args)
	c.Ends([]any{int64(1), int64(0), int64(1)}, nil)
	require.NoError(t, err)
	require.Equal(t, []bool{true, false, true}, held)

	for _, bad := range []any{nil, int64(1), []any{int64(1), int64(1)}, []any{int64(1), int64(1), "1"}} {
		e.renew(leasesOf("a", "b", "c"), func(h []bool, e error) { held, err = h, e })
		f.Last(t).Ends(bad, nil)
		require.ErrorIs(t, err, transport.ErrBadReply)
		require.Nil(t, held)
	}
	e.renew(leasesOf("a"), func(h []bool, e error) { held, err = h, e })
	f.Last(t).Ends(nil, errBroken)
	require.Equal(t, errBroken, err)
}

// cluster is a transport whose keys live in slots.
type cluster struct{ *faketransport.Fake }

func (cluster) Slot(key string) int { return int(key[0]) }

func TestClusterRenewalsAreGroupedBySlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := cluster{&faketransport.Fake{Answer: func(c *faketransport.SentCall) (any, error, bool) {
			reply := make([]any, c.Call.NumKeys)
			for i := range reply {
				reply[i] = int64(1)
			}
			return reply, nil, true
		}}}
		e, _ := engineOver(t, f)
		for _, l := range leasesOf("a1", "b1", "a2", "b2", "a3") {
			l.Holder = ignoring{}
			require.True(t, l.Hold(time.Now(), func(time.Duration) time.Duration { return time.Second }))
			require.True(t, e.Watchdog.Add(l))
		}
		time.Sleep(testLease/3 + time.Second)
		synctest.Wait()
		sizes := map[string]int{}
		for _, c := range f.Sent() {
			slot := c.Call.Key(0)[:1]
			for i := range c.Call.NumKeys {
				require.Equal(t, slot, c.Call.Key(i)[:1], "one script, one slot")
			}
			sizes[slot] += c.Call.NumKeys
		}
		require.Equal(t, map[string]int{"a": 3, "b": 2}, sizes)

		_, err := e.Map("{}orders")
		require.ErrorIs(t, err, limits.ErrInvalid, "which has no slot that all clients agree on")
	})
}

// ignoring is a holder that ignores the loss of its lease.
type ignoring struct{ watchdog.Holder }

func (ignoring) Owed() time.Duration    { return 0 }
func (ignoring) LeaseLost(watchdog.End) {}

var _ transport.Slotter = cluster{}

func TestTimeoutErrorNamesContextEnd(t *testing.T) {
	t.Parallel()
	require.Equal(t, ErrNotAcquired, WithEnd(t.Context(), ErrNotAcquired))
	bound, cancel := context.WithCancelCause(t.Context())
	cancel(ErrWaitOver)
	require.Equal(t, ErrNotAcquired, WithEnd(bound, ErrNotAcquired))
	canceled, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("the job was withdrawn"))
	err := WithEnd(canceled, ErrNotAcquired)
	require.ErrorIs(t, err, ErrNotAcquired)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorContains(t, err, "the job was withdrawn")
}
