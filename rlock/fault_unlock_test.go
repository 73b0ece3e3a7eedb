package rlock_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
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

// replyLosses are the ways in which the reply to a release can be lost. Each is
// begun before the release, and carried on when the server has run it.
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

// The first release never arrives; the second one's reply would say so.
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
	p.Reset() // and what is held back is lost
	p.Heal()
	require.NoError(t, <-unlocked)
	require.False(t, locked(t, s, key))
	require.Equal(t, 1, messages())
}

// A release that the network delayed runs when another owner holds the lock.
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

// A renewal that overtakes the release must not be able to tell the holder that
// the lock is gone: it is, because it was released.
func TestU31RenewalDuringASlowUnlockIsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, err := redlatch.NewWithTransport(slowRelease{})
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()
		hold := take(t, rlock.New(client, "job"), rlock.WithWatchdog(shortLease))
		ctx := hold.Context(t.Context())
		time.Sleep(shortLease / 6)
		began := time.Now()
		require.NoError(t, hold.Unlock())
		require.Equal(t, releaseTime, time.Since(began))
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrNotHeld)
	})
}

// slowRelease is a transport to a server that grants every lock, frees it at once
// and takes its time to say so: by then it answers renewals accordingly.
type slowRelease struct{}

const releaseTime = shortLease / 3

// Start is part of transport.Transport.
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

// Subscribe is part of transport.Transport.
func (slowRelease) Subscribe(context.Context, string) (transport.Subscription, error) {
	return nil, transport.ErrNotSent
}

// PublishCommand is part of transport.Transport.
func (slowRelease) PublishCommand() string { return "PUBLISH" }

// Close is part of transport.Transport.
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

// stuck is a log whose writer hangs at the first line.
type stuck struct {
	once             sync.Once
	reached, release chan struct{}
}

// Write is part of io.Writer.
func (s *stuck) Write(line []byte) (int, error) {
	if strings.Contains(string(line), "lock lost") {
		s.once.Do(func() { close(s.reached) })
		<-s.release
	}
	return len(line), nil
}
