package rfairlock_test

import (
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// foreignWaiter waits as a client of Redisson's does, in several queues at once. When it
// is notified that a lock is free, and it is the first, it takes it and frees it in one
// go.
type foreignWaiter struct {
	owner string
	names map[string]string // by channel
	conn  redis.Conn        // nil: not subscribed

	mu       sync.Mutex // guards what follows
	reported map[string]time.Time
}

// passOn is what it does with a lock.
const passOn = `if redis.call('EXISTS', KEYS[1]) == 1 or redis.call('LINDEX', KEYS[2], 0) ~= ARGV[1] then
    return 0
end
redis.call('LPOP', KEYS[2])
redis.call('ZREM', KEYS[3], ARGV[1])
local head = redis.call('LINDEX', KEYS[2], 0)
if head then
    redis.call('PUBLISH', KEYS[4] .. ':' .. head, '0')
end
return 1`

// foreignWaiter makes one join some of the queues, with a deadline that is far away and
// behind those of all others, as Redisson's script would.
func (q *queues) foreignWaiter(t *testing.T, names []string, listens bool) *foreignWaiter {
	t.Helper()
	s := &foreignWaiter{owner: redlatch.NewOwner(uuid.New(), 42).String(), names: map[string]string{}, reported: map[string]time.Time{}}
	channels := redis.Args{}
	for _, name := range names {
		deadline := time.Now().Add(2 * time.Hour)
		for _, before := range deadlinesOf(t, q.srv, name) {
			if behind := time.UnixMilli(before).Add(300 * time.Second); behind.After(deadline) {
				deadline = behind
			}
		}
		queueByHand(t, q.srv, name, s.owner, deadline)
		channel := codec.OwnerChannel(name, s.owner)
		s.names[channel] = name
		channels = channels.Add(channel)
	}
	if !listens {
		return s
	}
	done := make(chan struct{})
	t.Cleanup(func() { <-done }) // its connection is closed before
	acts := q.srv.Dial(t)
	s.conn = q.srv.Dial(t)
	require.NoError(t, redis.PubSubConn{Conn: s.conn}.Subscribe(channels...))
	go func() { defer close(done); s.listen(acts) }()
	for _, name := range names {
		until(t, soon, "the foreign waiter listens", func() bool { return listeners(t, q.srv, name, s.owner) == 1 })
	}
	return s
}

// listen goes on until the connection is closed.
func (s *foreignWaiter) listen(acts redis.Conn) {
	for script := redis.NewScript(4, passOn); ; {
		switch m := (redis.PubSubConn{Conn: s.conn}).Receive().(type) {
		case error:
			return
		case redis.Message:
			name := s.names[m.Channel]
			s.mu.Lock()
			if s.reported[name].IsZero() {
				s.reported[name] = time.Now()
			}
			s.mu.Unlock()
			// That it failed shows in the queue.
			_, _ = script.Do(acts, name, codec.QueueKey(name), codec.TimeoutKey(name), codec.LockChannel(name), s.owner)
		}
	}
}

// leaves ends its connection, as the end of its process does.
func (s *foreignWaiter) leaves(t *testing.T) {
	t.Helper()
	require.NoError(t, s.conn.Close())
}

// notifiedAt returns when it was first notified that a lock is free.
func (s *foreignWaiter) notifiedAt(t *testing.T, name string, within time.Duration) time.Time {
	t.Helper()
	var at time.Time
	until(t, within, "the foreign waiter is notified", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		at = s.reported[name]
		return !at.IsZero()
	})
	return at
}

// mixed are queues in which two dead foreign waiters stand before a living one and one of
// this library, of which either comes first in half of them.
type mixed struct {
	*queues
	seen        *evictions
	dead        []*foreignWaiter
	first, last *foreignWaiter // before, and behind, ours
	ours        []*waiter
}

// newMixed returns queues in which every client has a waiter. The foreign ones that
// will be dead listen for now, or never have.
func newMixed(t *testing.T, srv *redistest.Server, listen bool) *mixed {
	t.Helper()
	m := &mixed{queues: newQueues(t, srv, runs), seen: &evictions{}}
	for range 2 {
		m.dead = append(m.dead, m.foreignWaiter(t, m.names, listen))
	}
	half := m.names[:runs/2]
	m.first = m.foreignWaiter(t, half, true)
	m.ours = m.begin(t, connect(t, srv.URL(), redlatch.WithObserver(m.seen.observer())))
	for i, name := range m.names {
		ahead := 2
		if i < runs/2 {
			ahead = 3
		}
		awaitAsleep(t, srv, name, ahead+1)
	}
	m.last = m.foreignWaiter(t, m.names[runs/2:], true)
	return m
}

// passed checks that all live waiters had the lock, or were notified of it when they
// came first, within bound after since, and that the dead ones were evicted, and
// no other.
func (m *mixed) passed(t *testing.T, since time.Time, bound time.Duration, heard bool) {
	t.Helper()
	takenWithin(t, m.ours, since, bound)
	for _, name := range m.names[:runs/2] {
		require.LessOrEqual(t, m.first.notifiedAt(t, name, promptly).Sub(since), bound)
	}
	for _, name := range m.names[runs/2:] {
		m.last.notifiedAt(t, name, promptly)
	}
	for _, name := range m.names {
		until(t, promptly, "all have had their turn", func() bool { return len(queueOf(t, m.srv, name)) == 0 })
	}
	until(t, soon, "all are reported", func() bool { return len(m.seen.reported()) >= len(m.dead)*len(m.names) })
	gone := map[string][]string{}
	for _, e := range m.seen.reported() {
		require.Equal(t, heard, e.WasSubscribed)
		require.False(t, e.IsRedlatch)
		gone[e.Name] = append(gone[e.Name], e.Owner)
	}
	for _, name := range m.names {
		require.Equal(t, []string{m.dead[0].owner, m.dead[1].owner}, gone[name])
	}
}
