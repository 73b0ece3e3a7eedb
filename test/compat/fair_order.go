package compat

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

const (
	// contendedRounds is how often each language has the lock.
	contendedRounds = 200
	// contendedThreads is how many there are in each language.
	contendedThreads = 4
)

// javaWaits are the ways in which a Java thread waits.
var javaWaits = []peer.Command{
	{"op": "lock"}, {"op": "tryLock", "wait": 60000, "lease": 60000}, {"op": "lockInterruptibly"},
}

// testFairContention: threads of both languages come and go as they like. They count on the
// server, reading and writing in two steps, so that a lack of exclusion loses rounds; and
// the one that takes the lock must be the first that the server has queued.
func (c *compat) testFairContention(t *testing.T) {
	var result string
	c.table.note(t, c.release.String(), "no waiter is overtaken under contention", func() string { return result })
	t.Parallel()
	s, name := redistest.Start(t), redistest.Key(t)
	client := open(t, s)
	tape, all := recordQueue(t, s, name), newCounters(name+"n", contendedThreads)
	f := &fleet{server: s, name: name, key: all.key, lock: rfairlock.New(client, name), ours: all}
	f.javaCounts(connect(t, c.peer, s, nil), contendedThreads, fair(nil))
	for range contendedThreads {
		all.begin(t.Context(), f.lock, s.Dial(t))
	}
	f.awaitRounds(t, contendedRounds)
	count, theirs := f.end(t)
	queue := tape(t)
	require.Empty(t, queue.overtaken)
	require.Greater(t, int64(queue.waited), count/2, "most had to wait")
	requireNoQueue(t, s, name)
	result = fmt.Sprintf("%d turns, Go %d %%%s", queue.waited, 100*all.rounds(t)/count, theirs.timeouts())
}

// queueTape follows a fair lock's queue by what scripts do to it.
type queueTape struct {
	lock, queue string
	line        []string
	waited      int      // how often an owner took the lock that had been queued
	overtaken   []string // owners that took it though another was the first
	popped      string   // the last to leave the head of the queue in this script
}

// recordQueue begins to watch a lock. What it returns ends that.
func recordQueue(t *testing.T, s *redistest.Server, name string) func(*testing.T) *queueTape {
	t.Helper()
	conn := s.Dial(t)
	must(conn.Do("MONITOR"))(t)
	tape := &queueTape{lock: name, queue: codec.QueueKey(name)}
	ended := make(chan error, 1)
	go func() { ended <- tape.read(conn, "the end of "+name) }()
	return func(t *testing.T) *queueTape {
		t.Helper()
		s.Do(t, "ECHO", "the end of "+name)
		require.NoError(t, <-ended)
		return tape
	}
}

func (q *queueTape) read(conn redis.Conn, end string) error {
	for {
		text, err := redis.String(redis.ReceiveWithTimeout(conn, 2*time.Minute))
		if err != nil {
			return err
		}
		line, err := monitor.Parse(text)
		switch {
		case err != nil:
			return err
		case len(line.Args) == 2 && line.Args[1] == end:
			return nil
		case line.FromScript():
			q.add(line.Args)
		default:
			q.popped = ""
		}
	}
}

// add records what a script does. The owner that has taken the lock was the first, or the
// queue was empty.
func (q *queueTape) add(args []string) {
	switch command := strings.ToUpper(args[0]); {
	case len(args) < 2:
	case command == "RPUSH" && args[1] == q.queue:
		q.line = append(q.line, args[2])
	case command == "LREM" && args[1] == q.queue:
		q.line = slices.DeleteFunc(q.line, func(owner string) bool { return owner == args[3] })
	case command == "LPOP" && args[1] == q.queue && len(q.line) > 0:
		q.popped, q.line = q.line[0], q.line[1:]
	case command == "HSET" && args[1] == q.lock:
		q.took(args[2])
	}
}

func (q *queueTape) took(owner string) {
	switch q.popped {
	case owner:
		q.waited++
	case "":
		if len(q.line) > 0 {
			q.overtaken = append(q.overtaken, fmt.Sprintf("%s took it before %s", owner, q.line[0]))
		}
	default:
		q.overtaken = append(q.overtaken, fmt.Sprintf("%s took the turn of %s", owner, q.popped))
	}
}

const (
	// orderRuns is how often all wait at once for one lock.
	orderRuns = 20
	// orderProcesses are the Go processes, and orderOurs the waiters in each.
	orderProcesses, orderOurs = 5, 8
	// orderTheirs are the threads that wait in the Java process.
	orderTheirs = 10
	// orderWaiters is how many that makes.
	orderWaiters = orderProcesses*orderOurs + orderTheirs
	// orderHold is for how long a goroutine keeps the lock.
	orderHold = time.Millisecond
)

// turnsLoop is what a Go process does that takes turns: for each line of input, each of its
// goroutines takes the lock once.
func turnsLoop(url string, commands <-chan string) error {
	ctx := context.Background()
	client, err := redlatch.Open(ctx, url)
	if err != nil {
		return err
	}
	waiters, err := strconv.Atoi(os.Getenv(memberTurns))
	if err != nil {
		return err
	}
	lock := rfairlock.New(client, os.Getenv(memberLock))
	for what := range commands {
		fmt.Println(what, oneTurnEach(ctx, lock, waiters))
	}
	return nil
}

func oneTurnEach(ctx context.Context, lock *rlock.Lock, waiters int) (first error) {
	ended := make(chan error, waiters)
	for range waiters {
		go func() {
			ended <- lock.Do(ctx, func(context.Context) error {
				time.Sleep(orderHold) // the work under the lock
				return nil
			})
		}()
	}
	for range waiters {
		first = cmp.Or(first, <-ended)
	}
	return first
}

// turnTakers are processes of both languages that wait for one fair lock.
type turnTakers struct {
	ours    []member
	java    *java
	threads []peer.Command
	calls   []*peer.Call // in pairs: to take the lock, and to free it
}

func (c *compat) startTurnTakers(t *testing.T, s *redistest.Server, name string) *turnTakers {
	t.Helper()
	takers := &turnTakers{java: connect(t, c.peer, s, nil)}
	for range orderProcesses {
		takers.ours = append(takers.ours, startGo(t, s.URL(), name, memberTurns+"="+strconv.Itoa(orderOurs)))
	}
	for n := range orderTheirs {
		takers.threads = append(takers.threads, fair(peer.Command{"name": name, "thread": fmt.Sprint(name, n)}))
	}
	return takers
}

// begin makes all of them want the lock, at once.
func (k *turnTakers) begin(t *testing.T) {
	t.Helper()
	for _, process := range k.ours {
		process.lock(t)
	}
	for n, thread := range k.threads {
		k.calls = append(k.calls, k.java.begin(thread.With(javaWaits[n%len(javaWaits)])))
		// Done when the thread has the lock: it is kept for as long as that takes.
		k.calls = append(k.calls, k.java.begin(thread.With(peer.Command{"op": "unlock"})))
	}
}

// end waits until each has had the lock.
func (k *turnTakers) end(t *testing.T) {
	t.Helper()
	for _, process := range k.ours {
		process.locked(t, atMost)
	}
	for _, call := range k.calls {
		reply := must(call.Wait(atMost))(t)
		require.NotEqual(t, "false", string(reply.Value), "the wait of a tryLock ran out")
	}
	k.calls = nil
}

// testFairProcesses: fifty wait at once, of five Go processes and a Java process,
// and come in the order in which the server has queued them.
func (c *compat) testFairProcesses(t *testing.T) {
	var result string
	c.table.note(t, c.release.String(), "inversions among fifty waiters of six processes", func() string { return result })
	t.Parallel()
	s, name := redistest.Start(t), redistest.Key(t)
	takers := c.startTurnTakers(t, s, name)
	holder := rfairlock.New(open(t, s), name)
	tape := recordQueue(t, s, name)
	var took time.Duration
	for range orderRuns {
		hold := must(holder.Lock(t.Context(), rlock.WithLease(time.Minute)))(t)
		takers.begin(t)
		require.EventuallyWithT(t, func(ct *assert.CollectT) {
			require.Equal(ct, int64(orderWaiters), s.Do(t, "LLEN", codec.QueueKey(name)))
		}, atMost, time.Millisecond, "all are queued")
		began := time.Now()
		require.NoError(t, hold.Unlock())
		takers.end(t)
		took += time.Since(began)
	}
	queue := tape(t)
	require.Empty(t, queue.overtaken)
	require.Equal(t, orderRuns*orderWaiters, queue.waited, "each has waited for its turn")
	requireNoQueue(t, s, name)
	result = fmt.Sprintf("0 of %d turns", queue.waited)
	t.Logf("Redisson %s: %.0f hand-overs a second", c.release, float64(queue.waited)/took.Seconds())
}
