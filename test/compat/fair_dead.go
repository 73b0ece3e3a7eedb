package compat

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/fairqueue/liveness"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

const (
	fairRuns = 20
	// deadBound is the sum of a dead Java waiter's grace, one heartbeat period and some slack.
	deadBound = 3*liveness.DefaultGrace + 5*time.Second + 2*wakeBound
)

const goName = "redlatch-test"

type fairQueues struct {
	*compat
	server *redistest.Server
	names  []string
	holds  []*rlock.Hold
	java   *java
	locker *redlatch.Client
	seen   evictions
	lives  [][]member
}

type evictions struct {
	mu   sync.Mutex // guards the fields below
	dead map[string]int
}

func (e *evictions) observer() redlatch.Observer {
	return redlatch.Observer{Evicted: func(gone redlatch.Evicted) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.dead == nil {
			e.dead = map[string]int{}
		}
		e.dead[gone.Name]++
	}}
}

func (e *evictions) of(name string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dead[name]
}

func (c *compat) fairQueues(t *testing.T) *fairQueues {
	t.Helper()
	q := &fairQueues{compat: c, server: redistest.Start(t)}
	holder := open(t, q.server, redlatch.WithClientName(goName))
	for range fairRuns {
		name := redistest.Key(t)
		hold := must(rfairlock.New(holder, name).Lock(t.Context(), rlock.WithLease(time.Hour)))(t)
		q.names, q.holds = append(q.names, name), append(q.holds, hold)
	}
	q.java = connect(t, c.peer, q.server, nil)
	q.locker = open(t, q.server, redlatch.WithObserver(q.seen.observer()), redlatch.WithClientName(goName))
	q.lives = make([][]member, fairRuns)
	return q
}

func (q *fairQueues) await(t *testing.T, want int) {
	t.Helper()
	for _, name := range q.names {
		awaitQueued(t, q.server, name, want)
	}
}

func (q *fairQueues) join(t *testing.T, ahead int) {
	t.Helper()
	for turn := range 2 {
		for i, name := range q.names {
			var m member = &javaMember{java: q.java, kind: "fair", name: name, thread: name + "-lives"}
			if (i+turn)%2 == 1 {
				m = &goSide{client: q.locker, kind: "fair", name: name}
			}
			m.lock(t)
			q.lives[i] = append(q.lives[i], m)
		}
		q.await(t, ahead+turn+1)
	}
}

func (q *fairQueues) release(t *testing.T, dead int, bound time.Duration) (ends func(*testing.T)) {
	t.Helper()
	released := time.Now()
	for _, hold := range q.holds {
		require.NoError(t, hold.Unlock())
	}
	var all sync.WaitGroup
	took := make([][2]time.Duration, fairRuns)
	for i, lives := range q.lives {
		all.Go(func() {
			for k, m := range lives {
				took[i][k] = m.locked(t, bound+atMost).Sub(released)
				unlock(t, m)
			}
		})
	}
	return func(t *testing.T) {
		t.Helper()
		all.Wait()
		for i, name := range q.names {
			require.LessOrEqual(t, max(took[i][0], took[i][1]), bound)
			require.Eventually(t, func() bool { return q.seen.of(name) >= dead }, atMost, time.Millisecond)
			require.Equal(t, dead, q.seen.of(name), name)
			requireNoQueue(t, q.server, name)
		}
	}
}

func (q *fairQueues) victims(t *testing.T) (die func(*testing.T)) {
	t.Helper()
	doomed := connect(t, peer.Start(t, q.program), q.server, nil)
	for _, name := range q.names {
		doomed.begin(fair(peer.Command{"op": "lock", "name": name, "thread": name}))
	}
	q.await(t, 1)
	var calls []*peer.Call
	for _, name := range q.names {
		calls = append(calls, q.java.begin(fair(peer.Command{
			"op": "tryLock", "name": name, "thread": name, "wait": time.Hour.Milliseconds(), "lease": 60000,
		})))
	}
	q.await(t, 2)
	return func(t *testing.T) {
		t.Helper()
		doomed.peer.Halt()
		for i, name := range q.names {
			require.True(t, q.java.boolean(t, peer.Command{"op": "interrupt", "thread": name}))
			_, err := calls[i].Wait(atMost)
			require.Error(t, err)
			require.Len(t, queueOf(t, q.server, name)[:2], 2, "they leave their places behind")
		}
	}
}

func (c *compat) testFairDead(t *testing.T) {
	c.beside(t)
	never := c.fairQueues(t)
	never.victims(t)(t)
	never.join(t, 2)
	neverHeard := never.release(t, 2, deadBound)

	once := c.fairQueues(t)
	die := once.victims(t)
	once.join(t, 2)
	counted := once.counts(t)
	require.Eventually(t, func() bool { return once.counts(t) >= counted+2*fairRuns }, atMost, 100*time.Millisecond)
	die(t)
	heard := once.release(t, 2, deadBound)

	c.reconnectingJava(t)
	heard(t)
	neverHeard(t)
}

func (q *fairQueues) counts(t *testing.T) int64 {
	t.Helper()
	var n int64
	for command, times := range q.server.CommandStats(t) {
		if strings.HasPrefix(command, "pubsub") {
			n += times
		}
	}
	return n
}

func (c *compat) reconnectingJava(t *testing.T) {
	t.Helper()
	q := c.fairQueues(t)
	q.join(t, 0)
	before := map[string][]string{}
	for _, name := range q.names {
		before[name] = queueOf(t, q.server, name)
	}
	for range 9 {
		q.killJava(t)
		<-time.After(5 * time.Second)
	}
	for _, name := range q.names {
		require.Equal(t, before[name], queueOf(t, q.server, name))
	}
	q.release(t, 0, atMost)(t)
}

func (q *fairQueues) killJava(t *testing.T) {
	t.Helper()
	list := must(redis.String(q.server.Do(t, "CLIENT", "LIST"), nil))(t)
	killed := 0
	for line := range strings.Lines(list) {
		var id int64
		if _, err := fmt.Sscanf(line, "id=%d", &id); err == nil && strings.Contains(line, " name= ") {
			q.server.Do(t, "CLIENT", "KILL", "ID", id)
			killed++
		}
	}
	require.Positive(t, killed)
}
