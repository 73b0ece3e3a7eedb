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

var downs = map[string]func(t *testing.T, w *wire, client *redlatch.Client){
	"refuses connections": func(_ *testing.T, w *wire, _ *redlatch.Client) { w.refuse.Store(true); w.reset() },
	"never answers":       func(_ *testing.T, w *wire, _ *redlatch.Client) { w.hole.Store(true); w.reset() },
	"stopped answering": func(t *testing.T, w *wire, client *redlatch.Client) {
		t.Helper()
		loadScripts(t, client)
		w.hole.Store(true)
	},
	"closed its connections": func(t *testing.T, w *wire, client *redlatch.Client) {
		t.Helper()
		loadScripts(t, client)
		w.refuse.Store(true)
		w.reset()
	},
}

// eachDown runs play once per way in which Redis can be down.
func eachDown(t *testing.T, timeout time.Duration, play func(t *testing.T, l *rlock.Lock)) {
	t.Helper()
	for name, away := range downs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, client := wired(t, 0, redlatch.WithCommandTimeout(timeout))
				away(t, w, client)
				synctest.Wait()
				play(t, rlock.New(client, "job"))
			})
		})
	}
}

// awaitBroken returns when the client knows that its connection is closed. Until then a call may be
// written to it and become uncertain.
func awaitBroken(t *testing.T, client *redlatch.Client) *redlatch.Client {
	t.Helper()
	l := rlock.New(client, redistest.Key(t))
	until(t, soon, "a refused connection", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := l.IsLocked(ctx)
		return errors.Is(err, redlatch.ErrNotSent)
	})
	return client
}

// requireTransportError checks that the error is about the connection and not about the lock.
func requireTransportError(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	require.True(t, errors.Is(err, redlatch.ErrNotSent) || errors.Is(err, redlatch.ErrUncertain), "%v", err)
	require.NotErrorIs(t, err, redlatch.ErrNotAcquired)
	require.NotErrorIs(t, err, redlatch.ErrLost)
	require.NotErrorIs(t, err, redlatch.ErrClosed)
}

func TestU9NothingIsAcquiredWhileRedisIsDown(t *testing.T) {
	eachDown(t, 1500*time.Millisecond, func(t *testing.T, l *rlock.Lock) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, w := range []*waiter{
			inBackground(func() (*rlock.Hold, error) { return l.TryLock(ctx) }),
			await(ctx, l),
			await(ctx, l, rlock.WithLease(forever)),
			await(ctx, l, rlock.WithWatchdog(forever)),
		} {
			err := w.failed(t, time.Second+time.Millisecond)
			requireTransportError(t, err)
			require.ErrorIs(t, err, context.DeadlineExceeded)
		}
	})
}

func TestU9NoQuestionIsAnsweredWhileRedisIsDown(t *testing.T) {
	eachDown(t, 2*time.Second, func(t *testing.T, l *rlock.Lock) {
		t.Helper()
		for name, ask := range map[string]func(ctx context.Context) error{
			"IsLocked":    func(ctx context.Context) error { _, err := l.IsLocked(ctx); return err },
			"IsHeldBy":    func(ctx context.Context) error { _, err := l.IsHeldBy(ctx, redlatch.Owner{}); return err },
			"HoldCount":   func(ctx context.Context) error { _, err := l.HoldCount(ctx, redlatch.Owner{}); return err },
			"TTL":         func(ctx context.Context) error { _, err := l.TTL(ctx); return err },
			"ForceUnlock": func(ctx context.Context) error { _, err := l.ForceUnlock(ctx); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			began := time.Now()
			err := ask(ctx)
			cancel()
			requireTransportError(t, err)
			require.ErrorIs(t, err, context.DeadlineExceeded, name)
			require.Equal(t, 200*time.Millisecond, time.Since(began))
		}
	})
}

func TestU35WaitEndsInTimeWithATransportErrorWhileRedisIsDown(t *testing.T) {
	eachDown(t, 6*time.Second, func(t *testing.T, l *rlock.Lock) {
		t.Helper()
		w := await(t.Context(), l, rlock.WithWait(2*time.Second))
		requireTransportError(t, w.failed(t, 2*time.Second+time.Millisecond))
	})
}

func TestU35WithoutAnyBoundTheCommandTimeoutIsTheBound(t *testing.T) {
	eachDown(t, 2*time.Second, func(t *testing.T, l *rlock.Lock) {
		t.Helper()
		for _, w := range []*waiter{
			await(t.Context(), l), inBackground(func() (*rlock.Hold, error) { return l.TryLock(t.Context()) }),
		} {
			requireTransportError(t, w.failed(t, 3*time.Second)) // the last pause between dials may overrun by a second
		}
	})
}

// A waiter that once had a reply keeps waiting, and returns the transport error in the end.
func TestU35AWaiterSaysThatRedisWentAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0, redlatch.WithPollCap(100*time.Millisecond))
		holdByHand(t, w.srv, "job", forever)
		waits := await(t.Context(), rlock.New(client, "job"), rlock.WithWait(2*time.Second))
		time.Sleep(time.Second)
		w.refuse.Store(true)
		w.reset()
		requireTransportError(t, waits.failed(t, soon))
		require.Equal(t, 2*time.Second, waits.took)
	})
}

func TestU9OpenSaysThatRedisIsDown(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Pause()
	for _, addr := range []string{"127.0.0.1:1", s.Addr()} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		client, err := redlatch.Open(ctx, "redis://"+addr)
		require.Nil(t, client)
		require.ErrorIs(t, err, redlatch.ErrNotSent)
		require.ErrorContains(t, err, addr)
		require.Less(t, time.Since(began), time.Second+slack)
	}
}

type slowReply struct {
	name string
	slow func(t *testing.T, s *redistest.Server, p *redistest.Proxy) (deliver func())
}

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
			ctx, cancel := context.WithTimeout(t.Context(), lateBy/2)
			defer cancel()
			for _, how := range howLocks {
				key := redistest.Key(t)
				locks[key] = inBackground(func() (*rlock.Hold, error) { return how.lock(ctx, rlock.New(client, key)) })
			}
			for _, w := range locks {
				require.ErrorIs(t, w.failed(t, lateBy/2+atOnce), context.DeadlineExceeded)
			}
			until(t, lateBy+slack, "the grants", func() bool { return grants(t, s) == before+int64(len(locks)) })
			deliver()
			until(t, lateBy+time.Second+slack, "all locks free", func() bool { return s.Do(t, "DBSIZE") == int64(0) })
		})
	}
}

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
	// The waiter's next attempt is granted, but its reply is held back.
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
