package rlock_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const soon = 10 * time.Second

const shortLease = 6 * time.Second

// noPoll makes a missed wake-up fail the test.
func noPoll() redlatch.Option { return redlatch.WithPollCap(30 * time.Second) }

var connect, fakeClient = callers.Connect, callers.InProcess

func onShared(t *testing.T, opts ...redlatch.Option) (*redistest.Server, *redlatch.Client) {
	t.Helper()
	srv := redistest.Shared(t)
	return srv, connect(t, srv.URL(), opts...)
}

// inBubble starts a server and a client in a synctest bubble.
func inBubble(t *testing.T, opts ...redlatch.Option) (*redistest.MiniServer, *redlatch.Client) {
	t.Helper()
	srv := redistest.Mini(t, embedded.WithInProcess())
	return srv, fakeClient(t, srv, opts...)
}

func take(t testing.TB, l *rlock.Lock, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	h, err := l.TryLock(t.Context(), opts...)
	require.NoError(t, err)
	return h
}

type waiter struct {
	began time.Time
	done  chan struct{}
	// Read after done is closed.
	hold *rlock.Hold
	err  error
	over time.Time
}

// took returns the duration of a call in fake time.
func (w *waiter) took() time.Duration { return w.over.Sub(w.began) }

func await(ctx context.Context, l *rlock.Lock, opts ...rlock.Option) *waiter {
	return inBackground(func() (*rlock.Hold, error) { return l.Lock(ctx, opts...) })
}

// acquired returns the waiter's hold, which must arrive within d.
func (w *waiter) acquired(t testing.TB, d time.Duration) *rlock.Hold {
	t.Helper()
	w.ended(t, d)
	require.NoError(t, w.err)
	return w.hold
}

func (w *waiter) ended(t testing.TB, d time.Duration) {
	t.Helper()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.done:
	case <-timer.C:
		require.FailNow(t, "still waiting", "after %v", d)
	}
}

// checkHeld checks that another owner holds the lock.
func checkHeld(t testing.TB, err error) {
	t.Helper()
	assert.ErrorIs(t, err, redlatch.ErrNotAcquired)
	assert.NotErrorIs(t, err, redlatch.ErrUncertain)
}

// redigoTransport is the built-in transport to a server in a bubble.
func redigoTransport(srv *redistest.MiniServer) transport.Transport {
	return redisconn.NewRedigo(redisconn.Config{
		Dial:        srv.Server.Dial,
		Command:     3 * time.Second,
		Lease:       30 * time.Second,
		DialTimeout: 5 * time.Second,
		Logger:      slog.New(slog.DiscardHandler),
	})
}

func over(t *testing.T, tr transport.Transport, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	client, err := redlatch.NewWithTransport(tr, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

const (
	// atOnce bounds steps that need no round trip.
	atOnce = 2500 * time.Millisecond
	// forever is longer than any test.
	forever = time.Minute
)

func loadScripts(t *testing.T, client *redlatch.Client) {
	t.Helper()
	require.NoError(t, take(t, rlock.New(client, redistest.Key(t))).Unlock())
}

func grants(t *testing.T, s *redistest.Server) int64 {
	t.Helper()
	return s.CommandStats(t)["hincrby"]
}

func inBackground(lock func() (*rlock.Hold, error)) *waiter {
	w := &waiter{began: time.Now(), done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.hold, w.err = lock()
		w.over = time.Now()
	}()
	return w
}

// failed returns the waiter's error, which must arrive within d.
func (w *waiter) failed(t *testing.T, d time.Duration) error {
	t.Helper()
	w.ended(t, d)
	require.Nil(t, w.hold)
	require.Error(t, w.err)
	return w.err
}

func (w *waiter) stillWaits(t *testing.T) {
	t.Helper()
	select {
	case <-w.done:
		require.FailNow(t, "the call has ended", "%v", w.err)
	default:
	}
}

func until(t *testing.T, within time.Duration, what string, cond func() bool) {
	t.Helper()
	deadline := time.Now().Add(within)
	for !cond() {
		if time.Now().After(deadline) {
			require.FailNow(t, what, "not within %v", within)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func awaitClosed(t *testing.T, ch <-chan struct{}, within time.Duration, what string) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(within):
		require.FailNow(t, what, "not within %v", within)
	}
}

func owners(t *testing.T, s redistest.Target, key string) map[string]string {
	t.Helper()
	fields, err := redis.StringMap(s.Do(t, "HGETALL", key), nil)
	require.NoError(t, err)
	return fields
}

func locked(t *testing.T, s redistest.Target, key string) bool {
	t.Helper()
	return len(owners(t, s, key)) > 0
}

// ttl returns PTTL, which is negative if there is no key or no time to live.
func ttl(t *testing.T, s redistest.Target, key string) time.Duration {
	t.Helper()
	ms, err := redis.Int64(s.Do(t, "PTTL", key), nil)
	require.NoError(t, err)
	return time.Duration(ms) * time.Millisecond
}

// requireLeft checks that a lease has lost at most five seconds.
func requireLeft(t *testing.T, left, lease time.Duration) {
	t.Helper()
	require.LessOrEqual(t, left, lease)
	require.Greater(t, left, lease-5*time.Second)
}

const foreignOwner = "8f14e45f-ceea-467f-a0d2-4f1c1b8a7e11:7"

// holdByHand makes another owner the only holder.
func holdByHand(t *testing.T, s redistest.Target, key string, lease time.Duration) {
	t.Helper()
	s.Do(t, "EVAL", `redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])`, 1, key, foreignOwner, lease.Milliseconds())
}

func freeByHand(t *testing.T, s redistest.Target, key string) {
	t.Helper()
	s.Do(t, "DEL", key)
	s.Do(t, "PUBLISH", codec.LockChannel(key), protocol.MessageUnlock)
}

// awaitRenewal breaks the clients' connections, which triggers renewals, and returns when the lock's
// lease is forever again.
func awaitRenewal(t *testing.T, s *redistest.Server, key string) {
	t.Helper()
	s.Do(t, "PEXPIRE", key, (forever / 2).Milliseconds())
	s.Do(t, "CLIENT", "KILL", "TYPE", "normal")
	until(t, soon, "a renewal", func() bool { return ttl(t, s, key) > forever/2 })
}

// awaitWaiters returns when a connection is subscribed to the lock's channel.
func awaitWaiters(t *testing.T, s *redistest.Server, key string) {
	t.Helper()
	until(t, soon, "a listener", func() bool { return listeners(t, s, key) > 0 })
}

func listeners(t *testing.T, s *redistest.Server, key string) int64 {
	t.Helper()
	reply, err := redis.Values(s.Do(t, "PUBSUB", "NUMSUB", codec.LockChannel(key)), nil)
	require.NoError(t, err)
	n, err := redis.Int64(reply[1], nil)
	require.NoError(t, err)
	return n
}

// journal collects a logger's lines.
type journal struct{ *redistest.Journal }

func newJournal() (journal, redlatch.Option) {
	j, logger := redistest.NewJournal()
	return journal{j}, redlatch.WithLogger(logger)
}

// count returns the number of lines that contain all the words.
func (j journal) count(words ...string) int {
	n := 0
lines:
	for _, line := range j.Lines() {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue lines
			}
		}
		n++
	}
	return n
}

// awaitLoss waits until the hold is lost, for at most d.
func awaitLoss(t *testing.T, hold *rlock.Hold, d time.Duration) {
	t.Helper()
	ctx := hold.Context(t.Context())
	awaitClosed(t, ctx.Done(), d, "the loss")
	require.ErrorIs(t, context.Cause(ctx), redlatch.ErrLost)
	require.ErrorIs(t, hold.Err(), redlatch.ErrLost)
	require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
}
