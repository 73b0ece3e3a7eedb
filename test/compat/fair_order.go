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
	contendedRounds  = 200
	contendedThreads = 4
)

var javaWaits = []peer.Command{
	{"op": "lock"}, {"op": "tryLock", "wait": 60000, "lease": 60000}, {"op": "lockInterruptibly"},
}

// testFairContention increments a counter with separate reads and writes, so that increments are lost without mutual
// exclusion. Each new holder must have been the first waiter in the queue.
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

// queueTape tracks the queue of a fair lock by the commands that its scripts call.
type queueTape struct {
	lock, queue string
	line        []string
	waited      int
	overtaken   []string // owners that acquired it ahead of the first waiter
	popped      string   // the last owner removed from the head by this script
}

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

// add applies a command. It records a new holder in overtaken unless it was the first waiter or the queue was empty.
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
	orderRuns                 = 20
	orderProcesses, orderOurs = 5, 8
	orderTheirs               = 10
	orderWaiters              = orderProcesses*orderOurs + orderTheirs
	orderHold                 = time.Millisecond
)

// turnsLoop makes each goroutine acquire the lock once for each line of input.
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
				time.Sleep(orderHold)
				return nil
			})
		}()
	}
	for range waiters {
		first = cmp.Or(first, <-ended)
	}
	return first
}

type turnTakers struct {
	ours    []member
	java    *java
	threads []peer.Command
	calls   []*peer.Call
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

func (k *turnTakers) begin(t *testing.T) {
	t.Helper()
	for _, process := range k.ours {
		process.lock(t)
	}
	for n, thread := range k.threads {
		k.calls = append(k.calls, k.java.begin(thread.With(javaWaits[n%len(javaWaits)])))
		k.calls = append(k.calls, k.java.begin(thread.With(peer.Command{"op": "unlock"})))
	}
}

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
