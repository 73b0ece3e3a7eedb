package rlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// slowReply is a way to keep a reply from the caller. It returns what lets it
// go, when that does not happen by itself.
type slowReply struct {
	name string
	slow func(t *testing.T, s *redistest.Server, p *redistest.Proxy) (deliver func())
}

// lateBy is how late a reply is that comes by itself.
const lateBy = 5 * time.Second

var slowReplies = []slowReply{
	{"latency", func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy) func() {
		p.Latency(redistest.ToClient, lateBy)
		return func() { p.Latency(redistest.ToClient, 0) } // for replies to come
	}},
	{"black hole", func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy) func() {
		p.Blackhole(redistest.ToClient)
		return func() { p.Heal() }
	}},
	{"client pause", func(t *testing.T, s *redistest.Server, _ *redistest.Proxy) func() {
		t.Helper()
		s.Do(t, "CLIENT", "PAUSE", lateBy.Milliseconds(), "WRITE")
		return func() {}
	}},
}

// howLock is a way to ask for a lock.
type howLock struct {
	name string
	lock func(ctx context.Context, l *rlock.Lock) (*rlock.Hold, error)
}

var howLocks = []howLock{
	{"Lock", func(ctx context.Context, l *rlock.Lock) (*rlock.Hold, error) { return l.Lock(ctx) }},
	{"Lock with lease", func(ctx context.Context, l *rlock.Lock) (*rlock.Hold, error) {
		return l.Lock(ctx, rlock.WithLease(forever))
	}},
	{"TryLock", func(ctx context.Context, l *rlock.Lock) (*rlock.Hold, error) { return l.TryLock(ctx) }},
}

func TestU5CancelledAcquireLeavesNoUnreleasedHold(t *testing.T) {
	t.Parallel()
	for _, reply := range slowReplies {
		t.Run(reply.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p, client := through(t, s, redlatch.WithCommandTimeout(forever))
			before := grants(t, s)
			deliver := reply.slow(t, s, p)
			locks := map[string]*waiter{}
			// By then all calls have long been sent, and no reply has come.
			ctx, cancel := context.WithTimeout(t.Context(), lateBy/2)
			defer cancel()
			for _, how := range howLocks {
				key := redistest.Key(t)
				locks[key] = inBackground(func() (*rlock.Hold, error) { return how.lock(ctx, rlock.New(client, key)) })
			}
			for _, w := range locks {
				require.ErrorIs(t, w.failed(t, lateBy/2+atOnce), context.DeadlineExceeded)
			}
			// The server grants, or will grant, locks that no caller waits for
			// any more.
			until(t, lateBy+slack, "the grants", func() bool { return grants(t, s) == before+int64(len(locks)) })
			deliver()
			until(t, lateBy+time.Second+slack, "all locks free", func() bool { return s.Do(t, "DBSIZE") == int64(0) })
		})
	}
}

// A waiter's second attempt may be the one whose reply comes too late.
func TestU5WaiterCancelledDuringALaterAttemptLeavesNoUnreleasedHold(t *testing.T) {
	t.Parallel()
	s, key := redistest.Start(t), redistest.Key(t)
	p, client := through(t, s)
	holdByHand(t, s, key, forever)
	before := s.CommandStats(t)["evalsha"]
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := await(ctx, rlock.New(client, key))
	until(t, soon, "it sleeps", func() bool { return s.CommandStats(t)["evalsha"] == before+2 })
	// From here on the waiter hears nothing; its poll, when the holder's lease
	// should be over, is granted all the same.
	s.Do(t, "PEXPIRE", key, 100)
	until(t, soon, "the lease is over", func() bool { return !locked(t, s, key) })
	held := p.HoldMatching(redistest.ToClient, "$-1\r\n") // the grant
	s.Do(t, "PUBLISH", "redisson_lock__channel:{"+key+"}", "0")
	awaitClosed(t, held.Seen(), soon, "the grant")
	require.True(t, locked(t, s, key))
	w.stillWaits(t)

	cancel()
	require.ErrorIs(t, w.failed(t, atOnce), context.Canceled)
	held.Release()
	until(t, time.Second+slack, "the lock is free", func() bool { return !locked(t, s, key) })
}

func TestU34LockReturnsAtItsDeadlineAndNeverWithALockAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const wait = 2 * time.Second
		w, client := wired(t, 0, redlatch.WithCommandTimeout(forever))
		loadScripts(t, client)
		w.deaf.Store(true)
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		tries := []*waiter{await(t.Context(), rlock.New(client, "bounded"), rlock.WithWait(wait))}
		for _, how := range howLocks {
			tries = append(tries, inBackground(func() (*rlock.Hold, error) { return how.lock(ctx, rlock.New(client, how.name)) }))
		}
		for i, try := range tries {
			err := try.failed(t, wait+time.Millisecond)
			require.Equal(t, i > 0, errors.Is(err, context.DeadlineExceeded))
			require.ErrorIs(t, err, redlatch.ErrUncertain)
			require.NotErrorIs(t, err, redlatch.ErrNotAcquired, "no reply said that it is held")
		}
		err := rlock.New(client, "job").Do(ctx, func(context.Context) error {
			require.Fail(t, "entered after the deadline")
			return nil
		})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		w.deaf.Store(false)
		w.reset()
		time.Sleep(soon)
		require.Empty(t, keysLike(t, w.srv, "*"))
	})
}

func TestU34AContextThatHasEndedSendsNothing(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client := connect(t, s.URL())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, how := range howLocks {
		hold, err := how.lock(ctx, rlock.New(client, redistest.Key(t)))
		require.Nil(t, hold)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, redlatch.ErrNotSent)
	}
	l := rlock.New(client, redistest.Key(t))
	for range 100 {
		_, err := l.IsLocked(ctx)
		require.ErrorIs(t, err, context.Canceled)
		_, err = l.ForceUnlock(ctx)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, redlatch.ErrNotSent)
	}
	stats := s.CommandStats(t)
	require.Zero(t, stats["eval"]+stats["evalsha"]+stats["exists"])
}
