package rlock_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

func TestU30DoUnlocksWhenItsContextDiesDuringTheWork(t *testing.T) {
	t.Parallel()
	s, client := onShared(t)
	l := rlock.New(client, redistest.Key(t))
	for name, c := range map[string]struct {
		ctx  func() (context.Context, context.CancelFunc)
		want error
	}{
		"cancelled": {func() (context.Context, context.CancelFunc) { return context.WithCancel(t.Context()) }, context.Canceled},
		"timed out": {func() (context.Context, context.CancelFunc) {
			return context.WithTimeout(t.Context(), time.Second)
		}, context.DeadlineExceeded},
	} {
		ctx, cancel := c.ctx()
		defer cancel()
		err := l.Do(ctx, func(ctx context.Context) error {
			require.True(t, locked(t, s, l.Name()))
			if c.want == context.Canceled { //nolint:errorlint // a row of the table
				cancel()
			}
			<-ctx.Done()
			return context.Cause(ctx)
		})
		require.ErrorIs(t, err, c.want, name)
		require.NotErrorIs(t, err, redlatch.ErrNotHeld, name)
		require.False(t, locked(t, s, l.Name()), name)
	}
}

// replyLosses are ways to lose the reply to a release, before and after the server has run it.
var replyLosses = []struct {
	name  string
	then  func(p *redistest.Proxy)
	heal  func(p *redistest.Proxy)
	known bool // Unlock itself can tell that the lock is free
}{
	{"late", func(p *redistest.Proxy) { p.Heal() }, func(*redistest.Proxy) {}, true},
	{"reset", func(p *redistest.Proxy) { p.Reset(); p.Heal() }, func(*redistest.Proxy) {}, true},
	{"reset, and no way back for longer than Unlock waits",
		func(p *redistest.Proxy) { p.Refuse(true); p.Reset(); p.Heal() },
		func(p *redistest.Proxy) { p.Refuse(false) }, false},
	{"never", func(*redistest.Proxy) {}, func(p *redistest.Proxy) { p.Heal() }, false},
}

func TestU32UnlockWhoseReplyIsLostFreesTheLockOnceAndWakesOnce(t *testing.T) {
	t.Parallel()
	for _, loss := range replyLosses {
		t.Run(loss.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			logged, log := newJournal()
			p, client := through(t, s, log, redlatch.WithCommandTimeout(time.Second))
			key := redistest.Key(t)
			hold := take(t, rlock.New(client, key))
			messages := wakeUps(t, s, key)

			p.Blackhole(redistest.ToClient)
			unlocked := make(chan error, 1)
			go func() { unlocked <- hold.Unlock() }()
			until(t, soon, "the release", func() bool { return !locked(t, s, key) })
			loss.then(p)
			err := <-unlocked
			if loss.known {
				require.NoError(t, err)
			} else {
				requireTransportError(t, err)
				loss.heal(p)
				logged.await(t, 1, settled, key)
			}
			require.Equal(t, err, hold.Unlock(), "the first result stays")
			require.Equal(t, 1, messages())
			require.Equal(t, int64(0), s.Do(t, "DBSIZE"), "no latch key is left behind")
		})
	}
}

func TestU32UnlockWhoseCommandIsLostIsSentAgain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, client := through(t, s)
	key := redistest.Key(t)
	hold := take(t, rlock.New(client, key))
	messages := wakeUps(t, s, key)
	p.Blackhole(redistest.ToServer)
	unlocked := make(chan error, 1)
	go func() { unlocked <- hold.Unlock() }()
	until(t, soon, "the release under way", func() bool { return p.Holding(redistest.ToServer) > 0 })
	p.Reset() // held commands are lost
	p.Heal()
	require.NoError(t, <-unlocked)
	require.False(t, locked(t, s, key))
	require.Equal(t, 1, messages())
}

func TestU10InDoubtReleaseDoesNotTouchTheNextHolder(t *testing.T) {
	t.Parallel()
	s, p := delayingNet(t)
	s.Do(t, "ACL", "SETUSER", "default", "-client|kill", "-client|id") // else the in-doubt call is fenced before it runs
	client := connect(t, p.URL())
	loadScripts(t, client)
	key := redistest.Key(t)
	hold := take(t, rlock.New(client, key))
	messages := wakeUps(t, s, key)
	held := p.HoldMatching(redistest.ToServer, "EVALSHA")
	unlocked := make(chan error, 1)
	go func() { unlocked <- hold.Unlock() }()
	awaitClosed(t, held.Seen(), soon, "the release")
	p.Reset()
	require.NoError(t, <-unlocked)
	require.Equal(t, 1, messages())

	next := take(t, rlock.New(client, key))
	ran := s.CommandStats(t)["evalsha"]
	held.Release()
	until(t, soon, "the in-doubt call", func() bool { return s.CommandStats(t)["evalsha"] > ran })
	require.Equal(t, map[string]string{next.Owner().String(): "1"}, owners(t, s, key))
	require.Equal(t, 1, messages())
	require.NoError(t, next.Unlock())
	require.Equal(t, 2, messages())
}

func TestUnlockWhileRedisIsAwayIsMadeUpForInTheBackground(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	logged, log := newJournal()
	p, client := through(t, s, log, redlatch.WithCommandTimeout(time.Second))
	key := redistest.Key(t)
	hold := take(t, rlock.New(client, key))
	p.Refuse(true)
	p.Reset()
	began := time.Now()
	requireTransportError(t, hold.Unlock())
	require.Less(t, time.Since(began), time.Second+slack)
	require.True(t, locked(t, s, key))
	p.Refuse(false)
	logged.await(t, 1, settled, key, "was_held=true")
	require.False(t, locked(t, s, key))
}

// A renewal may find the lock already released.
func TestU31RenewalDuringASlowUnlockIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := over(t, slowRelease{})
		hold := take(t, rlock.New(client, "job"), rlock.WithWatchdog(shortLease))
		ctx := hold.Context(t.Context())
		time.Sleep(shortLease / 6)
		began := time.Now()
		require.NoError(t, hold.Unlock())
		require.Equal(t, releaseTime, time.Since(began))
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrNotHeld)
	})
}

// slowRelease is a transport whose releases free the lock immediately and reply late.
type slowRelease struct{}

const releaseTime = shortLease / 3

func (slowRelease) Start(c *transport.Call, done transport.Done) {
	c.Claim(0)
	switch c.Name() {
	case "acquire":
		done(nil, nil)
	case "renew":
		done([]any{int64(0)}, nil)
	default:
		time.AfterFunc(releaseTime, func() { done(int64(1), nil) })
	}
}

func (slowRelease) Subscribe(context.Context, string) (transport.Subscription, error) {
	return nil, transport.ErrNotSent
}

func (slowRelease) PublishCommand() string { return "PUBLISH" }

func (slowRelease) Close() error { return nil }

// A hold reports that its lease is over even while the watchdog is blocked, for example by a log
// handler that hangs. Not in a bubble: the handler's mutex would stop its time.
func TestU1HoldAsksTheClocksAndNotTheWatchdog(t *testing.T) {
	t.Parallel()
	log := &stuck{reached: make(chan struct{}), release: make(chan struct{})}
	_, client := onShared(t, redlatch.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	t.Cleanup(func() { close(log.release) })
	first := take(t, rlock.New(client, redistest.Key(t)), rlock.WithLease(time.Second))
	second := take(t, rlock.New(client, redistest.Key(t)), rlock.WithLease(2*time.Second))
	ctx := second.Context(t.Context())
	awaitClosed(t, log.reached, soon, "the watchdog's complaint")
	<-time.After(second.Remaining())
	require.ErrorIs(t, second.Err(), redlatch.ErrLost)
	require.ErrorIs(t, first.Err(), redlatch.ErrLost)
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	require.ErrorIs(t, context.Cause(ctx), redlatch.ErrLost)
	require.ErrorIs(t, second.Unlock(), redlatch.ErrLost)
}

type stuck struct {
	once             sync.Once
	reached, release chan struct{}
}

func (s *stuck) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "lock lost") {
		s.once.Do(func() { close(s.reached) })
		<-s.release
	}
	return len(line), nil
}

// connectionFaults break connections and release the lock in between.
var connectionFaults = []struct {
	name  string
	fault func(t *testing.T, s *redistest.Server, p *redistest.Proxy, free func())
}{
	{"subscription connections killed", func(t *testing.T, s *redistest.Server, _ *redistest.Proxy, free func()) {
		t.Helper()
		require.Positive(t, s.KillClients(t, "pubsub"))
		free()
		s.KillClients(t, "pubsub")
	}},
	{"command connections killed", func(t *testing.T, s *redistest.Server, _ *redistest.Proxy, free func()) {
		t.Helper()
		require.Positive(t, s.KillClients(t, "normal"))
		free()
		s.KillClients(t, "normal")
	}},
	{"all connections killed", func(t *testing.T, s *redistest.Server, _ *redistest.Proxy, free func()) {
		t.Helper()
		s.KillClients(t, "pubsub")
		free()
		s.KillClients(t, "normal")
		s.KillClients(t, "pubsub")
	}},
	{"reset by the network", func(_ *testing.T, _ *redistest.Server, p *redistest.Proxy, free func()) {
		p.Refuse(true)
		p.Reset()
		free()
		p.Refuse(false)
	}},
	{"server restarted, empty", func(_ *testing.T, s *redistest.Server, _ *redistest.Proxy, _ func()) {
		s.Restart()
	}},
	{"server paused", func(t *testing.T, s *redistest.Server, _ *redistest.Proxy, free func()) {
		t.Helper()
		free()
		s.Do(t, "CLIENT", "PAUSE", 1000, "ALL")
	}},
	{"server frozen for longer than commands may take", func(_ *testing.T, s *redistest.Server, _ *redistest.Proxy, free func()) {
		free()
		s.Pause()
		<-time.After(2500 * time.Millisecond)
		s.Resume()
	}},
}

func TestU16EveryWaiterGetsInAfterItsConnectionsBroke(t *testing.T) {
	t.Parallel()
	const clients, waitersEach = 2, 10
	for _, f := range connectionFaults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p := redistest.NewProxy(t, s.Addr())
			key := redistest.Key(t)
			holdByHand(t, s, key, forever)
			var inside atomic.Int32
			var waiters []*waiter
			for range clients {
				client := connect(t, p.URL(), noPoll(), redlatch.WithCommandTimeout(time.Second))
				for range waitersEach {
					waiters = append(waiters, inBackground(func() (*rlock.Hold, error) {
						hold, err := rlock.New(client, key).Lock(t.Context())
						if err != nil {
							return nil, err
						}
						if inside.Add(1) != 1 {
							t.Error("two are inside")
						}
						inside.Add(-1)
						err = hold.Unlock()
						if errors.Is(err, redlatch.ErrUncertain) {
							err = nil // the fault outlasted it; the lock is freed all the same
						}
						return hold, err
					}))
				}
			}
			awaitListeners(t, s, key, clients)
			f.fault(t, s, p, func() { freeByHand(t, s, key) })
			for _, w := range waiters {
				w.acquired(t, soon)
			}
			until(t, time.Second+slack, "the lock is free", func() bool { return !locked(t, s, key) })
		})
	}
}

// The first call runs on the server, the second does not.
func TestCallInFlightOnABrokenConnectionIsUncertain(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p, client := through(t, s)
	key := redistest.Key(t)
	try := func() (*rlock.Hold, error) { return rlock.New(client, key).TryLock(t.Context()) }

	before := grants(t, s)
	p.CutReplyAfter(1)
	require.ErrorIs(t, inBackground(try).failed(t, atOnce), redlatch.ErrUncertain)
	require.Equal(t, before+1, grants(t, s))
	until(t, time.Second+slack, "the lock is free", func() bool { return !locked(t, s, key) })

	held := p.HoldMatching(redistest.ToServer, key)
	w := inBackground(try)
	awaitClosed(t, held.Seen(), soon, "the acquire")
	s.KillClients(t, "normal")
	require.ErrorIs(t, w.failed(t, atOnce), redlatch.ErrUncertain)
	require.NoError(t, take(t, rlock.New(client, key)).Unlock())
	require.Equal(t, before+2, grants(t, s))
}

func TestHoldOutlivesBothItsConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, time.Millisecond)
		hold := take(t, rlock.New(client, "job"))
		holdByHand(t, w.srv, "other", time.Hour) // its waiter has the connection for subscriptions
		waiter := await(t.Context(), rlock.New(client, "other"))
		for range 3 {
			time.Sleep(25 * time.Second)
			w.reset()
		}
		time.Sleep(time.Minute)
		require.NoError(t, hold.Unlock())
		waiter.stillWaits(t)
		freed := time.Now()
		freeByHand(t, w.srv, "other")
		require.NoError(t, waiter.acquired(t, soon).Unlock())
		require.Less(t, time.Since(freed), time.Second)
	})
}
