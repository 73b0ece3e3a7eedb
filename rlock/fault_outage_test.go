package rlock_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

// shortLease is one that a holder renews every two seconds.
const shortLease = 6 * time.Second

// reportedLease is one whose loss is reported a whole second before it ends: a machine with too
// much to do, on which these tests run, may be late by less.
const reportedLease = 12 * time.Second

// earlyLoss has a loss reported three seconds before the lease ends, for a machine that stands
// still. A hold that counted on a renewal without a reply would report it after that: a third of the
// lease later.
func earlyLoss() redlatch.Option { return redlatch.WithLossMargin(3 * time.Second) }

// loss is how a hold's context ended.
type loss struct {
	at    time.Time
	cause error
}

// watchLoss notes when and why the hold's contexts end.
func watchLoss(t *testing.T, hold *rlock.Hold) <-chan loss {
	t.Helper()
	ended := make(chan loss, 1)
	ctx := hold.Context(t.Context())
	context.AfterFunc(ctx, func() { ended <- loss{time.Now(), context.Cause(ctx)} })
	return ended
}

// requireLostBy holds that the hold's context has ended before the moment, for
// the right reason, and that Unlock says so without waiting for Redis.
func requireLostBy(t *testing.T, hold *rlock.Hold, ended <-chan loss, limit time.Time) {
	t.Helper()
	require.NoError(t, lostBy(t, hold, ended, limit))
}

// lostBy is requireLostBy, but returns an error when the context has ended too late.
func lostBy(t *testing.T, hold *rlock.Hold, ended <-chan loss, limit time.Time) (late error) {
	t.Helper()
	select {
	case end := <-ended:
		if d := end.at.Sub(limit); d >= 0 {
			late = fmt.Errorf("lost %v too late", d)
		}
		require.ErrorIs(t, end.cause, redlatch.ErrLost)
	case <-time.After(time.Until(limit) + slack):
		require.FailNow(t, "not lost")
	}
	require.ErrorIs(t, hold.Err(), redlatch.ErrLost)
	require.Zero(t, hold.Remaining())
	began := time.Now()
	require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	require.Less(t, time.Since(began), atOnce)
	return late
}

func TestU1HolderOfAFrozenServerLearnsOfTheLossBeforeTheLeaseEnds(t *testing.T) {
	testlevel.All(t, "real leases, 11 s each")
	t.Parallel()
	for name, opt := range map[string]rlock.Option{
		"renewed": rlock.WithWatchdog(reportedLease),
		"fixed":   rlock.WithLease(reportedLease),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			redistest.UnlessTheMachineStalls(t, func() error { return loseFrozen(t, opt) })
		})
	}
}

// loseFrozen freezes the server of a hold, and returns an error when that learns of its loss after
// its lease.
func loseFrozen(t *testing.T, opt rlock.Option) error {
	t.Helper()
	s := redistest.Start(t)
	client := connect(t, s.URL(), redlatch.WithWatchdogTimeout(reportedLease))
	hold := take(t, rlock.New(client, redistest.Key(t)), opt)
	ended := watchLoss(t, hold)
	// Counted by the server, from no earlier than the question.
	asked := time.Now()
	leaseEnds := asked.Add(ttl(t, s, hold.Name()))
	s.Pause()
	if frozen := time.Now(); frozen.Sub(asked) > reportedLease/4 {
		leaseEnds = frozen.Add(reportedLease) // it may have been renewed in between
	}
	late := lostBy(t, hold, ended, leaseEnds)

	// The holder's clean-up does not block other callers.
	s.Resume()
	next := await(t.Context(), rlock.New(client, hold.Name()))
	require.NoError(t, next.acquired(t, reportedLease+slack).Unlock())
	return late
}

func TestU2HolderBehindABlackHoleLearnsOfTheLossBeforeTheLeaseEnds(t *testing.T) {
	testlevel.All(t, "real leases, 11 s each")
	t.Parallel()
	for name, dirs := range map[string][]redistest.Direction{
		"to the server": {redistest.ToServer},
		"to the client": {redistest.ToClient},
		"both ways":     nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Shared(t)
			p, client := through(t, s, redlatch.WithWatchdogTimeout(reportedLease), earlyLoss())
			hold := take(t, rlock.New(client, redistest.Key(t)))
			ended := watchLoss(t, hold)
			t.Cleanup(func() { p.Heal() }) // so that closing has nothing to wait for
			p.Blackhole(dirs...)
			cut := time.Now()
			if name == "to the client" {
				// Renewals arrive, but their replies do not: the holder must
				// not rely on them.
				requireLostBy(t, hold, ended, cut.Add(reportedLease))
				return
			}
			<-hold.Context(t.Context()).Done()
			// Asked after the loss, the server still has the lock.
			require.Positive(t, ttl(t, s, hold.Name()), "the loss came after the lease had ended")
			requireLostBy(t, hold, ended, cut.Add(reportedLease))
		})
	}
}

func TestU7RealServerAwayForLessThanTheLeaseCostsNothing(t *testing.T) {
	testlevel.All(t, "real leases, 6 s each")
	t.Parallel()
	const lease, outage = 9 * time.Second, 3 * time.Second
	for name, fault := range map[string]func(s *redistest.Server, p *redistest.Proxy) (repair func()){
		"frozen": func(s *redistest.Server, _ *redistest.Proxy) func() {
			s.Pause()
			return s.Resume
		},
		"black hole": func(_ *redistest.Server, p *redistest.Proxy) func() {
			p.Blackhole()
			return func() { p.Heal() }
		},
		"refused": func(_ *redistest.Server, p *redistest.Proxy) func() {
			p.Refuse(true)
			p.Reset()
			return func() { p.Refuse(false) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p, client := through(t, s, redlatch.WithWatchdogTimeout(lease))
			hold := take(t, rlock.New(client, redistest.Key(t)))
			ctx := hold.Context(t.Context())
			began := time.Now()
			<-time.After(lease/3 - time.Second)
			repair := fault(s, p) // the first renewal is due in a second
			<-time.After(outage)
			require.NoError(t, hold.Err())
			repair()
			until(t, lease-time.Since(began), "a renewal", func() bool { return ttl(t, s, hold.Name()) > lease-time.Second })
			require.NoError(t, ctx.Err())
			require.Equal(t, map[string]string{hold.Owner().String(): "1"}, owners(t, s, hold.Name()))
			require.NoError(t, hold.Unlock())
			require.False(t, locked(t, s, hold.Name()))
		})
	}
}

// The bytes of an acquire may lie in a frozen server for longer than a lease,
// and run when it wakes.
func TestU5AcquireThatRunsAfterALongFreezeLeavesNoUnreleasedHold(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL(), redlatch.WithWatchdogTimeout(shortLease), redlatch.WithCommandTimeout(time.Second))
	loadScripts(t, connect(t, s.URL()))
	before, key := grants(t, s), redistest.Key(t)
	s.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, err := rlock.New(client, key).Lock(ctx, rlock.WithLease(shortLease))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	<-time.After(shortLease + 3*time.Second) // longer than a question lasts that is begun within the lease
	s.Resume()
	resumed := time.Now()
	until(t, soon, "the late grant", func() bool { return grants(t, s) == before+1 })
	until(t, time.Until(resumed.Add(time.Second+slack)), "the lock is free", func() bool { return !locked(t, s, key) })
}
