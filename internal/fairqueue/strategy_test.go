package fairqueue

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

type listening struct {
	*faketransport.Fake

	mu       sync.Mutex // guards what follows
	channels []string
	subs     []*fakeSub
}

func (l *listening) Subscribe(_ context.Context, channel string) (transport.Subscription, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sub := newFakeSub()
	l.channels, l.subs = append(l.channels, channel), append(l.subs, sub)
	return sub, nil
}

func newListening() *listening {
	return &listening{Fake: &faketransport.Fake{Answer: answering(nil, nil)}}
}

type fakeClaim struct {
	acquire.Claim
	owner   codec.Owner
	request acquire.Request
	kept    acquire.Reusable
	placed  []bool
}

func (c *fakeClaim) ID() codec.Owner                     { return c.owner }
func (c *fakeClaim) Request() *acquire.Request           { return &c.request }
func (c *fakeClaim) Place() acquire.Request              { return c.request }
func (c *fakeClaim) Placed(now bool)                     { c.placed = append(c.placed, now) }
func (c *fakeClaim) KeepSubscription(s acquire.Reusable) { c.kept = s }

// fakeClaims makes claims for a given owner, or for the owner of a reused subscription.
type fakeClaims struct{ owner string }

func (c *fakeClaims) Claim(s acquire.Reusable) acquire.Claim {
	claim := &fakeClaim{owner: codec.NewOwner(uuid.UUID{}, 1)}
	claim.request = acquire.Request{Owner: c.owner, Wait: int64(1000), Lease: testLease.Milliseconds()}
	if s != nil {
		claim.owner, claim.request.Owner = s.Owner()
	}
	return claim
}

type call struct {
	*caller
	a *acquire.Acquisition
}

func newCall(qs *Queues, owner string) *call {
	k := kindOf(theLock)
	c, _ := qs.Strategy(k).Waiter(nil).(*caller)
	return &call{c, &acquire.Acquisition{
		Engine: qs.engine, Kind: k, Claims: &fakeClaims{owner}, Lock: "lock",
	}}
}

func (c *call) claim() *fakeClaim {
	claim, _ := c.a.Claim().(*fakeClaim)
	return claim
}

// queued returns a subscribed caller that is queued behind another.
func queued(t *testing.T, qs *Queues, owner string) *call {
	t.Helper()
	c := newCall(qs, owner)
	require.Equal(t, reply.NoTTL, c.Refused(c.a, acquire.Outcome{Queued: true, Head: "head", TTL: time.Hour}))
	require.NoError(t, c.Listen(t.Context(), c.a))
	return c
}

func TestLeaseLeftIgnoresQueuePlace(t *testing.T) {
	for name, test := range map[string]struct {
		out  acquire.Outcome
		want time.Duration
	}{
		"queued first":                  {acquire.Outcome{Queued: true, Head: "x", TTL: time.Minute}, time.Minute},
		"queued behind another":         {acquire.Outcome{Queued: true, Head: "y", TTL: time.Minute}, reply.NoTTL},
		"queued before a free lock":     {acquire.Outcome{Queued: true, Free: true, Head: "y", TTL: time.Minute}, 0},
		"waits, the holder has a lease": {acquire.Outcome{Head: "y", TTL: time.Minute}, time.Minute},
		"waits, no lease is known":      {acquire.Outcome{Head: "y"}, reply.NoTTL},
		"waits while the lock is free":  {acquire.Outcome{Free: true, Head: "y"}, 0},
		"waits, unlimited lease":        {acquire.Outcome{TTL: reply.NoTTL}, reply.NoTTL},
		"queued first, unlimited lease": {acquire.Outcome{Queued: true, Head: "x", TTL: reply.NoTTL}, reply.NoTTL},
	} {
		require.Equal(t, test.want, leaseLeft("x", test.out), name)
	}
}

func TestTryAttemptGetsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newListening()
		qs, _ := queuesOver(t, tr)
		c := newCall(qs, "x")
		c.a.Try = true
		granted, err := c.Enter(t.Context(), c.a)
		require.NoError(t, err)
		require.False(t, granted)
		require.Equal(t, time.Minute, c.Refused(c.a, acquire.Outcome{TTL: time.Minute, Head: "y"}))
		c.Leave(c.a)
		synctest.Wait()
		require.Zero(t, count(tr.Fake, "GIVEUP"))
		require.Empty(t, c.claim().placed)
		requireNoGroup(t, qs)
	})
}

func TestOnlyGroupLeaderPolls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, _ := queuesOver(t, newListening())
		first, second := queued(t, qs, "a"), queued(t, qs, "b")
		require.Equal(t, time.Minute, first.Sleep(time.Minute, time.Hour))
		require.Negative(t, second.Sleep(time.Minute, time.Hour))

		time.Sleep(time.Second)
		first.Leave(first.a)
		_, wake := second.Signals()
		<-wake
		ask, d := second.Woken()
		require.False(t, ask)
		require.Equal(t, time.Minute-time.Second, d, "it retries when the other would have")
		require.Equal(t, time.Minute, second.Sleep(time.Minute, time.Hour))
		time.Sleep(2 * time.Minute)
		ask, d = second.Woken()
		require.False(t, ask)
		require.Positive(t, d, "soon after that time")
		second.Leave(second.a)
		requireNoGroup(t, qs)
	})
}

func TestUnsubscribedLeaderPollsEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, _ := queuesOver(t, newListening())
		first, second := queued(t, qs, "a"), queued(t, qs, "b")
		require.Equal(t, time.Minute, first.Sleep(time.Minute, time.Hour))
		second.unsubscribe()
		slept := second.Sleep(time.Minute, time.Hour)
		require.Equal(t, time.Second, slept)
		_, proof, _ := second.group.due()
		require.Equal(t, "a", proof, "the other proves nothing")
		first.Leave(first.a)
		_, wake := second.Signals()
		<-wake
		ask, d := second.Woken()
		require.False(t, ask)
		if d > 0 {
			slept = d
		}
		require.Equal(t, time.Second, slept)
		require.NoError(t, second.Listen(t.Context(), second.a))
		_, proof, _ = second.group.due()
		require.Equal(t, "b", proof)
		second.Leave(second.a)
	})
}

func TestPollingBacksOffForReservedFreeLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, _ := queuesOver(t, newListening())
		c := queued(t, qs, "a")
		require.Less(t, c.Sleep(time.Minute, 0), 50*time.Millisecond)
		for range 10 {
			c.Sleep(time.Minute, 0)
		}
		require.Greater(t, c.Sleep(time.Minute, 0), 500*time.Millisecond)
		require.Equal(t, time.Minute, c.Sleep(time.Minute, time.Hour))
		require.Less(t, c.Sleep(time.Minute, 0), 50*time.Millisecond, "it is another time")
		c.Leave(c.a)
	})
}

func TestGapMakesLeaderRetryForGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, _ := queuesOver(t, newListening())
		first, second := queued(t, qs, "a"), queued(t, qs, "b")
		ask, d := second.OnEvent(transport.Event{Gap: true})
		require.False(t, ask)
		require.Zero(t, d)
		require.True(t, first.group.gap)
		require.Len(t, first.group.hurry, 1, "the heartbeat is due")
		ask, _ = first.Woken()
		require.True(t, ask)
		ask, _ = second.Woken()
		require.False(t, ask)

		ask, _ = first.OnEvent(transport.Event{Gap: true})
		require.True(t, ask)
		ask, _ = second.OnEvent(transport.Event{Payload: "0"})
		require.True(t, ask, "the message is its own")
		second.Leave(second.a)
		first.Leave(first.a)
	})
}

func TestRefusalWakesHeadAndRequeuesDisplacedCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs, _ := queuesOver(t, newListening())
		first, second := queued(t, qs, "a"), queued(t, qs, "b")
		first.Refused(first.a, acquire.Outcome{Free: true, Head: "a"}) // itself
		require.False(t, wasCalled(first.caller))
		first.Refused(first.a, acquire.Outcome{Free: true, Head: "b"})
		require.True(t, wasCalled(second.caller))
		require.True(t, first.leads())
		first.Refused(first.a, acquire.Outcome{Queued: true, Head: "b"})
		require.False(t, first.leads(), "it is now behind the other")
		require.True(t, second.leads())
		require.Equal(t, []bool{true, false, false, true}, first.claim().placed)
		second.Leave(second.a)
		first.Leave(first.a)
	})
}

// Their deadlines seem near because the waiters ahead have shorter waits.
func TestShortWaitsSendOneHeartbeatPerPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newListening()
		qs, _ := queuesOver(t, tr)
		for range 100 {
			c := newCall(qs, "a")
			c.Refused(c.a, acquire.Outcome{Queued: true, Position: 3, Head: "head", TTL: time.Second})
			time.Sleep(time.Millisecond)
			c.Leave(c.a)
			time.Sleep(period/50 - time.Millisecond)
		}
		require.Equal(t, 2, count(tr.Fake, "HEARTBEAT"))
	})
}

// The others must queue again once the common place is gone.
func TestCanceledCallerLeavesQueueAndWakesSameOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newListening()
		tr.Answer = nil
		qs, _ := queuesOver(t, tr)
		first, other := queued(t, qs, "x"), queued(t, qs, "x")
		first.Leave(first.a)
		require.Equal(t, int64(1), tr.subs[0].closed.Load())
		require.Equal(t, []string{"GIVEUP"}, names(tr.Fake))
		require.Equal(t, []any{"x"}, tr.Last(t).Call.Args)
		require.True(t, wasCalled(other.caller), "it may be its turn")
		tr.Last(t).Ends(nil, nil)
		require.True(t, wasCalled(other.caller), "it is no longer queued")
		other.Leave(other.a)
		tr.Last(t).Ends(nil, nil)
		requireNoGroup(t, qs)
		requireNothingOpen(t, qs)
	})
}

// The resolver of the attempt removes the owner.
func TestAbandonedOwnerLeavesGroupOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newListening()
		qs, _ := queuesOver(t, tr)
		c := queued(t, qs, "a")
		c.Abandon()
		require.Equal(t, int64(1), tr.subs[0].closed.Load())
		requireNoGroup(t, qs)
		c.Leave(c.a)
		require.Zero(t, count(tr.Fake, "GIVEUP"))
	})
}

func TestGrantedCallerPassesOnSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newListening()
		qs, _ := queuesOver(t, tr)
		c := queued(t, qs, "a")
		c.Granted(c.a)
		requireNoGroup(t, qs)
		require.Zero(t, count(tr.Fake, "GIVEUP"), "the server has taken it out")
		kept := c.claim().kept
		require.NotNil(t, kept)
		time.Sleep(keepOpen / 2)
		kept.Put()

		next := newCall(qs, "b")
		_, err := next.Enter(t.Context(), next.a)
		require.NoError(t, err)
		require.Equal(t, "a", next.claim().request.Owner)
		require.Equal(t, c.claim().owner, next.claim().owner)
		require.NoError(t, next.Listen(t.Context(), next.a))
		require.Equal(t, []string{"a"}, tr.channels, "it listens already")
		next.Granted(next.a)
		require.Same(t, kept, next.claim().kept)
		time.Sleep(2 * keepOpen)
		synctest.Wait()
		require.Equal(t, "1", closes(tr.subs))
	})
}

// Other callers may use the owner.
func TestGrantedCallerWithGivenOwnerKeepsNoSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newListening()
		qs, _ := queuesOver(t, tr)
		c := newCall(qs, "a")
		c.a.Given = true
		_, err := c.Enter(t.Context(), c.a)
		require.NoError(t, err)
		c.Refused(c.a, acquire.Outcome{Queued: true})
		require.NoError(t, c.Listen(t.Context(), c.a))
		c.Granted(c.a)
		require.Nil(t, c.claim().kept)
		require.Equal(t, "1", closes(tr.subs))
		requireNoGroup(t, qs)
	})
}

func TestContendedLockSubscribesBeforeAcquire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := newListening()
		qs, _ := queuesOver(t, tr)
		enter := func(ctx context.Context, change func(a *acquire.Acquisition)) int {
			before := len(tr.channels)
			c := newCall(qs, "x")
			change(c.a)
			_, err := c.Enter(ctx, c.a)
			require.NoError(t, err)
			c.Leave(c.a)
			return len(tr.channels) - before
		}
		usual := func(*acquire.Acquisition) {}
		require.Zero(t, enter(t.Context(), usual), "it is likely to be free")
		other := queued(t, qs, "a")
		require.Equal(t, 1, enter(t.Context(), usual))
		require.Zero(t, enter(t.Context(), func(a *acquire.Acquisition) { a.Try = true }))
		require.Zero(t, enter(t.Context(), func(a *acquire.Acquisition) { a.Given = true }))
		short, cancel := context.WithTimeout(t.Context(), acquire.Overdue)
		defer cancel()
		require.Zero(t, enter(short, usual), "it might not retry")
		other.Leave(other.a)
		for _, sub := range tr.subs {
			require.Equal(t, int64(1), sub.closed.Load())
		}

		require.NoError(t, qs.engine.Close())
		c := newCall(qs, "x")
		_, err := c.Enter(t.Context(), c.a)
		require.ErrorIs(t, err, engine.ErrClosed)
		c.Leave(c.a)
	})
}
