package compat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

const (
	fleetClients = 2
	fleetThreads = 4

	// fleetWarm is the number of rounds per language before Java has compiled its code.
	fleetWarm            = 300
	fleetLeast           = 2000
	fleetSpan, fleetMost = 15 * time.Second, 2 * time.Minute
	fleetOver            = int64(1) << 40

	leastShare = 30

	// mostTimeouts is the permitted number of subscription timeouts per Java thread. They are a defect of Redisson (see
	// "Which Redisson" in docs/compatibility.md). Each takes 7.5 seconds, so a thread that has two of them returns
	// before Redlatch considers it dead.
	mostTimeouts = 2
)

type doer interface {
	Do(ctx context.Context, fn func(ctx context.Context) error, opts ...rlock.Option) error
}

// fleet increments a counter with separate reads and writes, so that increments are lost without mutual exclusion.
type fleet struct {
	server    *redistest.Server
	name, key string
	lock      doer
	theirs    []*peer.Call
	ours      ourCounters
}

type ourCounters interface {
	rounds(t *testing.T) int64
	wait(t *testing.T)
}

func (c *compat) testFleet(t *testing.T) {
	s := redistest.Start(t)
	var count, share int64
	var theirs threadCounts
	c.table.note(t, c.release.String(), "exclusion", func() string {
		return fmt.Sprintf("%d rounds, none lost%s", count, theirs.timeouts())
	})
	c.table.note(t, c.release.String(), "shares", func() string {
		return fmt.Sprintf("Go %d %%, Java %d %%", share, 100-share)
	})
	f := &fleet{server: s, name: redistest.Key(t), key: redistest.Key(t)}
	f.lock = rlock.New(open(t, s), f.name)
	for range fleetClients {
		f.javaCounts(connect(t, c.peer, s, nil), fleetThreads, peer.Command{})
	}
	f.ours = startCounters(t, f)
	f.awaitRounds(t, fleetWarm)
	share = f.measure(t)
	count, theirs = f.end(t)
	requireClean(t, s, f.name)
	require.GreaterOrEqual(t, share, int64(leastShare), "Go's share")
	require.GreaterOrEqual(t, 100-share, int64(leastShare), "Java's share")
}

func (f *fleet) javaCounts(j *java, threads int, fields peer.Command) {
	for n := range threads {
		f.theirs = append(f.theirs, j.begin(fields.With(peer.Command{
			"op": "count", "thread": fmt.Sprint("count", n), "name": f.name, "address": f.server.URL(), "key": f.key,
			"total": fleetOver, "timeouts": mostTimeouts,
		})))
	}
}

func (f *fleet) rounds(t *testing.T) (count, ours int64) {
	t.Helper()
	count, err := redis.Int64(f.server.Do(t, "GET", f.key), nil)
	if !errors.Is(err, redis.ErrNil) {
		require.NoError(t, err)
	}
	return count, f.ours.rounds(t)
}

func (f *fleet) awaitRounds(t *testing.T, least int64) {
	t.Helper()
	var count, ours int64
	for end := time.Now().Add(2 * time.Minute); min(ours, count-ours) < least; time.Sleep(10 * time.Millisecond) {
		count, ours = f.rounds(t)
		require.True(t, time.Now().Before(end), "one language does not get in: Go %d of %d rounds", ours, count)
	}
}

func (f *fleet) measure(t *testing.T) int64 {
	t.Helper()
	first, firstOurs := f.rounds(t)
	for began := time.Now(); ; time.Sleep(time.Second) {
		count, ours := f.rounds(t)
		if time.Since(began) > fleetSpan && count-first >= fleetLeast {
			return 100 * (ours - firstOurs) / (count - first)
		}
		require.Less(t, time.Since(began), fleetMost, "only %d rounds so far", count-first)
	}
}

func (f *fleet) end(t *testing.T) (count int64, theirs threadCounts) {
	t.Helper()
	require.NoError(t, f.lock.Do(t.Context(), func(context.Context) error {
		count, _ = f.rounds(t)
		f.server.Do(t, "SET", f.key, fleetOver)
		return nil
	}))
	f.ours.wait(t)
	for _, call := range f.theirs {
		var one threadCounts
		require.NoError(t, must(call.Wait(2*time.Minute))(t).Into(&one))
		theirs.Rounds += one.Rounds
		theirs.Timeouts += one.Timeouts
	}
	require.Equal(t, count, f.ours.rounds(t)+theirs.Rounds, "lost updates: two concurrent holders")
	return count, theirs
}

type threadCounts struct {
	Rounds   int64
	Timeouts int64 // subscription timeouts, after each of which lock() was called again
}

func (a threadCounts) timeouts() string {
	if a.Timeouts == 0 {
		return ""
	}
	return fmt.Sprintf(", subscription timeouts in Java: %d", a.Timeouts)
}

type counters struct {
	key   string
	done  atomic.Int64
	ended chan error
}

func newCounters(key string, n int) *counters {
	return &counters{key: key, ended: make(chan error, n)}
}

// begin starts countUp in a goroutine, which then owns conn.
func (c *counters) begin(ctx context.Context, lock doer, conn redis.Conn) {
	go func() { c.ended <- c.countUp(ctx, lock, conn) }()
}

func (c *counters) countUp(ctx context.Context, lock doer, conn redis.Conn) (err error) {
	for over := false; !over && err == nil; {
		err = lock.Do(ctx, func(context.Context) error {
			count, err := redis.Int64(conn.Do("GET", c.key))
			if err != nil && !errors.Is(err, redis.ErrNil) {
				return err
			}
			if over = count >= fleetOver; over {
				return nil
			}
			c.done.Add(1)
			_, err = conn.Do("SET", c.key, strconv.FormatInt(count+1, 10))
			return err
		})
	}
	return err
}

func (c *counters) end() (first error) {
	for range cap(c.ended) {
		first = cmp.Or(first, <-c.ended)
	}
	return first
}

func (c *counters) rounds(*testing.T) int64 { return c.done.Load() }

func (c *counters) wait(t *testing.T) {
	t.Helper()
	require.NoError(t, c.end())
}

const (
	askRounds = "rounds"
	askEnd    = "end"
)

func countLoop(url string, commands <-chan string) error {
	ctx := context.Background()
	all := newCounters(os.Getenv(memberCounts), fleetClients*fleetThreads)
	for range fleetClients {
		client, err := redlatch.Open(ctx, url)
		if err != nil {
			return err
		}
		lock := rlock.New(client, os.Getenv(memberLock))
		for range fleetThreads {
			conn, err := redis.DialURL(url)
			if err != nil {
				return err
			}
			all.begin(ctx, lock, conn)
		}
	}
	for what := range commands {
		if what == askRounds {
			fmt.Println(what, all.done.Load())
		} else {
			fmt.Println(what, all.end())
		}
	}
	return nil
}

type countingProcess struct{ *goMember }

// startCounters uses a separate process, because other tests in the same process would slow it down.
func startCounters(t *testing.T, f *fleet) countingProcess {
	t.Helper()
	return countingProcess{startGo(t, f.server.URL(), f.name, memberCounts+"="+f.key)}
}

func (p countingProcess) rounds(t *testing.T) (n int64) {
	t.Helper()
	p.send(t, askRounds)
	select {
	case line := <-p.output:
		must(fmt.Sscanf(line.text, askRounds+" %d", &n))(t)
	case <-time.After(atMost):
		require.FailNow(t, "the Go process does not say how many rounds it has done")
	}
	return n
}

func (p countingProcess) wait(t *testing.T) {
	t.Helper()
	p.send(t, askEnd)
	p.expect(t, askEnd+" <nil>", atMost)
}
