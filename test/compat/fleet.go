package compat

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

const (
	fleetClients = 2 // of each language
	fleetThreads = 4 // of each client

	// fleetWarm is how many rounds each language does before the measure begins:
	// the first there has the lock alone for a while, and Java compiles.
	fleetWarm = 300
	// fleetLeast is how many rounds a measurement needs. How long they take is the
	// machine's affair, and that of what else runs there.
	fleetLeast = 2000
	// fleetSpan is how long is measured at least, and fleetMost at most.
	fleetSpan, fleetMost = 15 * time.Second, 2 * time.Minute
	// fleetOver in the counter says that it is over.
	fleetOver = int64(1) << 40

	// leastShare is what each language gets at least, in per cent.
	leastShare = 30

	// mostTimeouts is how many subscription timeouts a Java thread that counts may meet.
	// They are a fault of Redisson (docs/compatibility.md, "Which Redisson"). Each takes
	// 7.5 seconds: after two the thread is back before Redlatch takes it for dead.
	mostTimeouts = 2
)

// doer is a lock, or several as one.
type doer interface {
	Do(ctx context.Context, fn func(ctx context.Context) error, opts ...rlock.Option) error
}

// fleet is both languages at one lock, as often as they can. Under it they count
// on the server, reading and writing in two steps: every lack of exclusion loses
// rounds.
type fleet struct {
	server    *redistest.Server
	name, key string
	lock      doer // of a client that does not count
	theirs    []*peer.Call
	ours      ourCounters
}

// ourCounters are goroutines of ours that count, in this process or in one of their own.
type ourCounters interface {
	// rounds returns how many they have done by now.
	rounds(t *testing.T) int64
	// wait returns when all of them have ended well.
	wait(t *testing.T)
}

// testFleet demands that no round is lost, and that each language gets its share.
func (c *compat) testFleet(t *testing.T) {
	s := redistest.Start(t)
	var count, share int64
	var theirs threadCounts
	c.table.note(t, c.release.String(), "exclusion", func() string {
		return fmt.Sprintf("%d rounds, none lost%s", count, theirs.timeouts())
	})
	c.table.note(t, c.release.String(), "shares", func() string { return fmt.Sprintf("Go %d %%, Java %d %%", share, 100-share) })
	f := &fleet{server: s, name: redistest.Key(t), key: redistest.Key(t)}
	f.lock = rlock.New(open(t, s), f.name)
	c.javaCounts(t, f)
	f.ours = startCounters(t, f)
	f.awaitRounds(t, fleetWarm)
	share = f.measure(t)
	count, theirs = f.end(t)
	requireClean(t, s, f.name)
	require.GreaterOrEqual(t, share, int64(leastShare), "Go's share")
	require.GreaterOrEqual(t, 100-share, int64(leastShare), "Java's share")
}

// javaCounts begins the Java side. Its replies come when it is over.
func (c *compat) javaCounts(t *testing.T, f *fleet) {
	t.Helper()
	for range fleetClients {
		j := connect(t, c.peer, f.server, nil)
		for n := range fleetThreads {
			f.theirs = append(f.theirs, j.begin(peer.Command{
				"op": "count", "thread": fmt.Sprint(j.client, n), "name": f.name,
				"address": f.server.URL(), "key": f.key, "total": fleetOver,
				"timeouts": mostTimeouts,
			}))
		}
	}
}

// rounds returns how many there were by now, in all and of ours.
func (f *fleet) rounds(t *testing.T) (count, ours int64) {
	t.Helper()
	count, err := redis.Int64(f.server.Do(t, "GET", f.key), nil)
	if !errors.Is(err, redis.ErrNil) {
		require.NoError(t, err)
	}
	return count, f.ours.rounds(t)
}

// awaitRounds waits until each language has done that many.
func (f *fleet) awaitRounds(t *testing.T, least int64) {
	t.Helper()
	var count, ours int64
	for end := time.Now().Add(2 * time.Minute); min(ours, count-ours) < least; time.Sleep(10 * time.Millisecond) {
		count, ours = f.rounds(t)
		require.True(t, time.Now().Before(end), "one language does not get in: Go %d of %d rounds", ours, count)
	}
}

// measure returns Go's share of the rounds, in per cent.
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

// end stops both sides, holds that no round was lost, and returns how many there
// were and what the Java threads did.
func (f *fleet) end(t *testing.T) (count int64, theirs threadCounts) {
	t.Helper()
	require.NoError(t, f.lock.Do(t.Context(), func(context.Context) error {
		count, _ = f.rounds(t)
		f.server.Do(t, "SET", f.key, fleetOver)
		return nil
	}))
	f.ours.wait(t)
	theirs = awaitThreadCounts(t, f.theirs, 2*time.Minute)
	require.Equal(t, count, f.ours.rounds(t)+theirs.Rounds, "rounds were lost: two were inside at once")
	return count, theirs
}

// threadCounts is the reply of a Java thread that counted, or the sum of several.
type threadCounts struct {
	Rounds   int64
	Timeouts int64 // after which lock() was called again
}

// awaitThreadCounts demands that all threads end well, each in time.
func awaitThreadCounts(t *testing.T, calls []*peer.Call, by time.Duration) (all threadCounts) {
	t.Helper()
	for _, call := range calls {
		reply := must(call.Wait(by))(t)
		var one threadCounts
		require.NoError(t, reply.Into(&one))
		all.Rounds += one.Rounds
		all.Timeouts += one.Timeouts
	}
	return all
}

// timeouts ends a cell of the table: empty if there was none.
func (a threadCounts) timeouts() string {
	if a.Timeouts == 0 {
		return ""
	}
	return fmt.Sprintf(", subscription timeouts in Java: %d", a.Timeouts)
}
