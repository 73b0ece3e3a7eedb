package compat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

const (
	// fairWaiters is how many wait at once, half of them in each language.
	fairWaiters = 12
	// contendedRounds is how often the workers have the lock.
	contendedRounds = 500
	// contendedThreads is how many there are in each language.
	contendedThreads = 4
)

// javaWaits are the ways in which a Java thread waits.
var javaWaits = []peer.Command{{"op": "lock"}, {"op": "tryLock", "wait": 60000, "lease": 60000}, {"op": "lockInterruptibly"}}

// turn is the outcome of a waiter's turn.
type turn struct {
	owner  string
	err    error
	unlock func() error
}

// testFairOrder: waiters of both languages, of several clients and by every call
// that waits, have the lock in the order in which the server has queued them.
func (c *compat) testFairOrder(t *testing.T) {
	c.ownLine(t)
	t.Parallel()
	s, name := redistest.Shared(t), redistest.Key(t)
	javas := []*java{connect(t, c.peer, s, nil), connect(t, c.peer, s, nil)}
	locks := []*rlock.Lock{rfairlock.New(open(t, s), name), rfairlock.New(open(t, s), name)}
	hold, err := locks[0].Lock(t.Context(), rlock.WithLease(time.Minute))
	require.NoError(t, err)
	turns := make(chan turn, fairWaiters)
	for i := range fairWaiters {
		side := i / 2 % 2 // the client
		if i%2 == 0 {
			javas[side].queueUp(t, name, i, turns)
		} else {
			queueUpOurs(t, locks[side], i, turns)
		}
		awaitQueued(t, s, name, i+1)
	}
	order := queueOf(t, s, name)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(order))), fairWaiters)
	require.NoError(t, hold.Unlock())
	for place, owner := range order {
		select {
		case got := <-turns:
			require.NoError(t, got.err)
			require.Equal(t, owner, got.owner, "place %d", place)
			require.NoError(t, got.unlock())
		case <-time.After(atMost):
			require.FailNow(t, "no waiter takes the lock", "place %d is %s", place, owner)
		}
	}
	requireNoQueue(t, s, name)
}

// queueUp makes a thread of its own wait, in one of the ways that Java has.
func (j *java) queueUp(t *testing.T, name string, i int, turns chan<- turn) {
	t.Helper()
	thread := fmt.Sprint(name, i)
	owner := j.owner(t, thread)
	command := fair(peer.Command{"name": name, "thread": thread})
	call := j.begin(command.With(javaWaits[i/2%len(javaWaits)]))
	go func() {
		_, err := call.Wait(atMost)
		turns <- turn{owner, err, func() error {
			_, err := j.begin(command.With(peer.Command{"op": "unlock"})).Wait(atMost)
			return err
		}}
	}()
}

func queueUpOurs(t *testing.T, lock *rlock.Lock, i int, turns chan<- turn) {
	t.Helper()
	var opts []rlock.Option
	if i%3 == 0 {
		opts = append(opts, rlock.WithWait(time.Minute))
	}
	go func() {
		hold, err := lock.Lock(t.Context(), opts...)
		if err != nil {
			turns <- turn{err: err}
			return
		}
		turns <- turn{hold.Owner().String(), nil, hold.Unlock}
	}()
}

// testFairContention: threads of both languages come and go as they like. They count on the
// server, reading and writing in two steps, so that a lack of exclusion loses rounds; and
// the one that takes the lock must be the first that the server has queued.
func (c *compat) testFairContention(t *testing.T) {
	var result string
	c.table.note(t, c.release.String(), "no waiter is overtaken under contention", func() string { return result })
	t.Parallel()
	s, name, key := redistest.Start(t), redistest.Key(t), redistest.Key(t)
	tape := recordQueue(t, s, name)
	j, client := connect(t, c.peer, s, nil), open(t, s)
	var calls []*peer.Call
	tallies := make(chan int64, contendedThreads)
	errs := make(chan error, contendedThreads)
	for n := range contendedThreads {
		calls = append(calls, j.begin(fair(peer.Command{
			"op": "count", "thread": fmt.Sprint(name, n), "name": name,
			"address": s.URL(), "key": key, "total": contendedRounds,
			"timeouts": mostTimeouts,
		})))
		conn := s.Dial(t)
		go func() {
			rounds, err := contendedCounts(t.Context(), rfairlock.New(client, name), conn, key)
			tallies <- rounds
			errs <- err
		}()
	}
	var ours int64
	for range contendedThreads {
		ours += <-tallies
		require.NoError(t, <-errs)
	}
	theirs := awaitThreadCounts(t, calls, atMost)
	require.Equal(t, int64(contendedRounds), ours+theirs.Rounds, "rounds were lost: two were inside at once")
	queue := tape(t)
	require.Empty(t, queue.overtaken)
	require.Greater(t, queue.waited, contendedRounds/2, "most had to wait")
	requireNoQueue(t, s, name)
	result = fmt.Sprintf("%d turns, Go %d %%%s", queue.waited, 100*ours/contendedRounds, theirs.timeouts())
}

func contendedCounts(ctx context.Context, lock *rlock.Lock, conn redis.Conn, key string) (rounds int64, err error) {
	for full := false; !full && err == nil; {
		err = lock.Do(ctx, func(context.Context) error {
			count, err := redis.Int64(conn.Do("GET", key))
			if err != nil && !errors.Is(err, redis.ErrNil) {
				return err
			}
			if full = count >= contendedRounds; full {
				return nil
			}
			rounds++
			_, err = conn.Do("SET", key, strconv.FormatInt(count+1, 10))
			return err
		})
	}
	return rounds, err
}

// queueTape follows a fair lock's queue by what scripts do to it.
type queueTape struct {
	lock, queue string
	line        []string
	waited      int      // how often an owner took the lock that had been queued
	overtaken   []string // owners that took it though another was the first
	popped      string   // the last to leave the head of the queue in this script

	pushed, granted []string // the owners queued, and those that took the lock, in order
}

// recordQueue begins to watch a lock. What it returns ends that.
func recordQueue(t *testing.T, s *redistest.Server, name string) func(*testing.T) *queueTape {
	t.Helper()
	conn := s.Dial(t)
	_, err := conn.Do("MONITOR")
	require.NoError(t, err)
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
		q.pushed = append(q.pushed, args[2])
	case command == "LREM" && args[1] == q.queue:
		q.line = slices.DeleteFunc(q.line, func(owner string) bool { return owner == args[3] })
	case command == "LPOP" && args[1] == q.queue && len(q.line) > 0:
		q.popped, q.line = q.line[0], q.line[1:]
	case command == "HSET" && args[1] == q.lock:
		q.took(args[2])
	}
}

func (q *queueTape) took(owner string) {
	q.granted = append(q.granted, owner)
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
