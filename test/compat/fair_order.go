package compat

import (
	"fmt"
	"slices"
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
)

const (
	// contendedRounds is how often the workers have the lock.
	contendedRounds = 500
	// contendedThreads is how many there are in each language.
	contendedThreads = 4
)

// javaWaits are the ways in which a Java thread waits.
var javaWaits = []peer.Command{{"op": "lock"}, {"op": "tryLock", "wait": 60000, "lease": 60000}, {"op": "lockInterruptibly"}}

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
	all := newCounters(key, contendedRounds, contendedThreads)
	for n := range contendedThreads {
		calls = append(calls, j.begin(fair(peer.Command{
			"op": "count", "thread": fmt.Sprint(name, n), "name": name,
			"address": s.URL(), "key": key, "total": contendedRounds,
			"timeouts": mostTimeouts,
		})))
		all.begin(t.Context(), rfairlock.New(client, name), s.Dial(t))
	}
	all.wait(t)
	ours := all.rounds(t)
	theirs := awaitThreadCounts(t, calls, atMost)
	require.Equal(t, int64(contendedRounds), ours+theirs.Rounds, "rounds were lost: two were inside at once")
	queue := tape(t)
	require.Empty(t, queue.overtaken)
	require.Greater(t, queue.waited, contendedRounds/2, "most had to wait")
	requireNoQueue(t, s, name)
	result = fmt.Sprintf("%d turns, Go %d %%%s", queue.waited, 100*ours/contendedRounds, theirs.timeouts())
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
