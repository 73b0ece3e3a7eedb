package rfairlock_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

const (
	soon     = 10 * time.Second // bounds an immediate effect on a real server
	promptly = 3 * time.Second  // bounds a wake-up in fake time; a poll takes thirty seconds
	forever  = time.Minute      // is longer than any test runs
)

// noPoll keeps polls from hiding a missed wake-up.
func noPoll() redlatch.Option { return redlatch.WithPollCap(30 * time.Second) }

var connect = callers.Connect

// take acquires a free lock.
func take(t testing.TB, l *rlock.Lock, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	h, err := l.TryLock(t.Context(), opts...)
	require.NoError(t, err)
	return h
}

// waiter is a call to Lock in a goroutine. The other fields are set when done is closed.
type waiter struct {
	done chan struct{}
	hold *rlock.Hold
	err  error
	took time.Duration
	at   time.Time
}

// await calls Lock in a goroutine.
func await(ctx context.Context, l *rlock.Lock, opts ...rlock.Option) *waiter {
	w := &waiter{done: make(chan struct{})}
	began := time.Now()
	go func() {
		defer close(w.done)
		w.hold, w.err = l.Lock(ctx, opts...)
		w.at = time.Now()
		w.took = w.at.Sub(began)
	}()
	return w
}

// ended waits until the call has returned.
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

// acquired returns the waiter's hold, which it must get within d.
func (w *waiter) acquired(t testing.TB, d time.Duration) *rlock.Hold {
	t.Helper()
	w.ended(t, d)
	require.NoError(t, w.err)
	return w.hold
}

// failed returns the waiter's error, which it must get within d.
func (w *waiter) failed(t testing.TB, d time.Duration) error {
	t.Helper()
	w.ended(t, d)
	require.Nil(t, w.hold)
	require.Error(t, w.err)
	return w.err
}

func (w *waiter) stillWaits(t testing.TB) {
	t.Helper()
	select {
	case <-w.done:
		require.FailNow(t, "the call has ended", "%v", w.err)
	default:
	}
}

// until polls cond until it holds. Its pauses grow, as fake time passes only between polls.
func until(t testing.TB, within time.Duration, what string, cond func() bool) {
	t.Helper()
	limit := time.After(within)
	for pause := time.Millisecond; !cond(); pause += pause / 2 {
		select {
		case <-time.After(pause):
		case <-limit:
			require.True(t, cond(), "%s: not within %v", what, within)
			return
		}
	}
}

// checkHeld checks that another owner held the lock.
func checkHeld(t testing.TB, err error) {
	t.Helper()
	assert.ErrorIs(t, err, redlatch.ErrNotAcquired)
	assert.NotErrorIs(t, err, redlatch.ErrUncertain)
}

// owners returns the counts of the lock's owners.
func owners(t testing.TB, s redistest.Target, name string) map[string]string {
	t.Helper()
	fields, err := redis.StringMap(s.Do(t, "HGETALL", name), nil)
	require.NoError(t, err)
	return fields
}

func locked(t testing.TB, s redistest.Target, name string) bool {
	t.Helper()
	return len(owners(t, s, name)) > 0
}

// queueOf returns the queued owners, with the next one first.
func queueOf(t testing.TB, s redistest.Target, name string) []string {
	t.Helper()
	queue, err := redis.Strings(s.Do(t, "LRANGE", codec.QueueKey(name), 0, -1), nil)
	require.NoError(t, err)
	return queue
}

// deadlinesOf returns the waiters' deadlines.
func deadlinesOf(t testing.TB, s redistest.Target, name string) map[string]int64 {
	t.Helper()
	scores, err := redis.StringMap(s.Do(t, "ZRANGE", codec.TimeoutKey(name), 0, -1, "WITHSCORES"), nil)
	require.NoError(t, err)
	out := map[string]int64{}
	for owner, score := range scores {
		ms, err := strconv.ParseFloat(score, 64)
		require.NoError(t, err)
		out[owner] = int64(ms)
	}
	return out
}

// listeners counts the subscribers to a waiter's channel.
func listeners(t testing.TB, s redistest.Target, name, owner string) int64 {
	t.Helper()
	reply, err := redis.Values(s.Do(t, "PUBSUB", "NUMSUB", protocol.OwnerChannel(name, owner)), nil)
	require.NoError(t, err)
	n, err := redis.Int64(reply[1], nil)
	require.NoError(t, err)
	return n
}

// awaitQueue returns the queue once it has n waiters.
func awaitQueue(t testing.TB, s redistest.Target, name string, n int) []string {
	t.Helper()
	var queue []string
	until(t, soon, "the queue", func() bool {
		queue = queueOf(t, s, name)
		return len(queue) == n
	})
	return queue
}

// awaitAsleep returns the queue once it has n waiters and the last has subscribed.
func awaitAsleep(t testing.TB, s redistest.Target, name string, n int) []string {
	t.Helper()
	queue := awaitQueue(t, s, name, n)
	until(t, soon, "the listener", func() bool { return listeners(t, s, name, queue[n-1]) > 0 })
	return queue
}

// queueUp queues n subscribed waiters.
func queueUp(ctx context.Context, t testing.TB, s redistest.Target, l *rlock.Lock, n int, opts ...rlock.Option) []*waiter {
	t.Helper()
	before := len(queueOf(t, s, l.Name()))
	var all []*waiter
	for i := range n {
		all = append(all, await(ctx, l, opts...))
		awaitAsleep(t, s, l.Name(), before+i+1)
	}
	return all
}

// requireNoTrace waits until no key and no subscriber to the lock's channels is left.
func requireNoTrace(t testing.TB, s redistest.Target, name string) {
	t.Helper()
	until(t, soon, "no key and no channel", func() bool {
		keys, err := redis.Strings(s.Do(t, "KEYS", "*"+name+"*"), nil)
		require.NoError(t, err)
		channels, err := redis.Strings(s.Do(t, "PUBSUB", "CHANNELS", "*"+name+"*"), nil)
		require.NoError(t, err)
		return len(keys)+len(channels) == 0
	})
}

func requireNoneQueued(t testing.TB, s redistest.Target, name string) {
	t.Helper()
	require.Empty(t, queueOf(t, s, name))
	require.Empty(t, deadlinesOf(t, s, name))
}

// Owners of other clients.
const (
	foreignOwner = "8f14e45f-ceea-467f-a0d2-4f1c1b8a7e11:7"
	foreignHead  = "8f14e45f-ceea-467f-a0d2-4f1c1b8a7e11:8"
	foreignTail  = "8f14e45f-ceea-467f-a0d2-4f1c1b8a7e11:9"
)

// holdByHand makes another owner hold the lock.
func holdByHand(t testing.TB, s redistest.Target, name string, lease time.Duration) {
	t.Helper()
	s.Do(t, "EVAL", `redis.call('DEL', KEYS[1])
redis.call('HSET', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])`, 1, name, foreignOwner, lease.Milliseconds())
}

// freeByHand frees the lock and notifies the first waiter, as a release does.
func freeByHand(t testing.TB, s redistest.Target, name string) {
	t.Helper()
	s.Do(t, "DEL", name)
	if queue := queueOf(t, s, name); len(queue) > 0 {
		s.Do(t, "PUBLISH", protocol.OwnerChannel(name, queue[0]), protocol.MessageUnlock)
	}
}

// queueByHand appends another owner to the queue.
func queueByHand(t testing.TB, s redistest.Target, name, owner string, deadline time.Time) {
	t.Helper()
	s.Do(t, "RPUSH", codec.QueueKey(name), owner)
	s.Do(t, "ZADD", codec.TimeoutKey(name), deadline.UnixMilli(), owner)
}
