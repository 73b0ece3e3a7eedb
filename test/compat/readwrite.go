package compat

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// testReadWrite runs what both languages do with one read/write lock, side by side.
func (c *compat) testReadWrite(t *testing.T) {
	t.Run("fleet", c.testReadWriteFleet)
	t.Run("wake-up", c.testReadWriteWakeUp)
	t.Run("behaviour", c.testReadWriteBehaviour)
	t.Run("crashes", c.testReadWriteCrashes)
}

const (
	rwClients = 2                    // of each language
	rwThreads = 4                    // of each client
	rwReaders = 70                   // of a hundred rounds read
	rwRest    = 6 * time.Millisecond // between two rounds, at most
	rwSpan    = 12 * time.Second     // of the measure, at least
	// rwLeast is how many rounds of each language and role a measurement needs. How long they
	// take is the machine's affair.
	rwLeast = 100
	// rwLeastShare is what each language gets of each role at least, in per cent. A Redisson that
	// is told of a free lock sends one waiter of its client, and ours all its readers.
	rwLeastShare = 10
)

// rwFleet is both languages at one read/write lock. A writer raises two counters on the server;
// a reader must find them equal.
type rwFleet struct {
	server           *redistest.Server
	name, key, other string
	reads, writes    atomic.Int64 // of ours
	longest          atomic.Int64 // wait of a writer of ours, in microseconds
}

// testReadWriteFleet demands that no writer is inside beside another owner, and that each
// language gets its share of both roles.
func (c *compat) testReadWriteFleet(t *testing.T) {
	f := &rwFleet{server: redistest.Start(t), name: redistest.Key(t), key: redistest.Key(t), other: redistest.Key(t) + " other"}
	var verdict string
	c.table.note(t, c.release.String(), "readers and writers", func() string { return verdict })
	var theirs []*peer.Call
	for range rwClients {
		j := connect(t, c.peer, f.server, nil)
		for n := range rwThreads {
			theirs = append(theirs, j.begin(peer.Command{
				"op": "readWrite", "thread": fmt.Sprint("t", n), "name": f.name, "address": f.server.URL(),
				"key": f.key, "other": f.other, "total": fleetOver, "readers": rwReaders, "rest": rwRest.Milliseconds(),
			}))
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	for range rwClients {
		lock := rreadwritelock.New(open(t, f.server), f.name)
		for range rwThreads {
			conn := f.server.Dial(t)
			all.Go(func() { assert.NoError(t, f.rounds(ctx, lock, conn)) })
		}
	}
	f.measure(t)
	cancel()
	all.Wait()
	verdict = f.end(t, theirs)
	requireCleanOn(t, f.server, f.name, codec.ReadWriteChannel(f.name))
}

// measure waits until both languages have their rounds. No thread writes as often as it reads, so
// that one that has written enough has read enough, and Java tells its reads at the end only.
func (f *rwFleet) measure(t *testing.T) {
	t.Helper()
	conn := f.server.Dial(t)
	for began := time.Now(); time.Since(began) < 2*atMost; time.Sleep(100 * time.Millisecond) {
		ours := f.writes.Load()
		all, err := count(conn, f.key)
		require.NoError(t, err)
		if time.Since(began) >= rwSpan && min(ours, all-ours) >= rwLeast {
			return
		}
	}
}

// rounds reads and writes until ctx ends.
func (f *rwFleet) rounds(ctx context.Context, lock *rreadwritelock.Lock, conn redis.Conn) error {
	for ctx.Err() == nil {
		time.Sleep(time.Duration(rand.Int64N(int64(rwRest))))
		role, work, done := lock.Read(), f.read, &f.reads
		if rand.IntN(100) >= rwReaders {
			role, work, done = lock.Write(), f.write, &f.writes
		}
		began := time.Now()
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		err := role.Do(bounded, func(context.Context) error {
			if done == &f.writes {
				f.longest.Store(max(f.longest.Load(), time.Since(began).Microseconds()))
			}
			done.Add(1)
			return work(conn)
		})
		cancel()
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *rwFleet) read(conn redis.Conn) error {
	first, err := count(conn, f.key)
	for _, key := range []string{f.other, f.key} {
		again, err2 := count(conn, key)
		err = errors.Join(err, err2)
		if err == nil && again != first {
			err = fmt.Errorf("%s is %d and was %d: a writer is inside beside a reader", key, again, first)
		}
	}
	return err
}

func (f *rwFleet) write(conn redis.Conn) error {
	for _, key := range []string{f.key, f.other} {
		n, err := count(conn, key)
		if err != nil {
			return err
		}
		if _, err := conn.Do("SET", key, strconv.FormatInt(n+1, 10)); err != nil {
			return err
		}
	}
	return nil
}

// count is a counter, 0 before the first.
func count(conn redis.Conn, key string) (int64, error) {
	n, err := redis.Int64(conn.Do("GET", key))
	if errors.Is(err, redis.ErrNil) {
		err = nil
	}
	return n, err
}

// end stops the Java side, holds that no round was lost, and returns a cell of the table.
func (f *rwFleet) end(t *testing.T, theirs []*peer.Call) string {
	t.Helper()
	lock, conn := rreadwritelock.New(open(t, f.server), f.name), f.server.Dial(t)
	var total int64
	require.NoError(t, lock.Write().Do(t.Context(), func(context.Context) (err error) {
		total, err = count(conn, f.key)
		f.server.Do(t, "MSET", f.key, fleetOver, f.other, fleetOver)
		return err
	}))
	type rounds struct{ Reads, Writes, LongestWrite int64 }
	var java rounds
	for _, call := range theirs {
		reply, err := call.Wait(2 * time.Minute)
		require.NoError(t, err)
		var one rounds
		require.NoError(t, reply.Into(&one))
		java = rounds{java.Reads + one.Reads, java.Writes + one.Writes, max(java.LongestWrite, one.LongestWrite)}
	}
	reads, writes := f.reads.Load(), f.writes.Load()
	require.Equal(t, total, writes+java.Writes, "rounds were lost: two writers were inside at once")
	for role, n := range map[string][2]int64{"reads": {reads, java.Reads}, "writes": {writes, java.Writes}} {
		require.GreaterOrEqual(t, min(n[0], n[1]), int64(rwLeast), role)
		require.GreaterOrEqual(t, 100*min(n[0], n[1])/(n[0]+n[1]), int64(rwLeastShare), "%s: Go %d, Java %d", role, n[0], n[1])
	}
	t.Logf("longest wait to write: Go %v, Java %v", time.Duration(f.longest.Load())*time.Microsecond, time.Duration(java.LongestWrite)*time.Microsecond)
	return fmt.Sprintf("%d writes, %d reads, none lost; Go %d %%, %d %%", total, reads+java.Reads,
		100*writes/total, 100*reads/(reads+java.Reads))
}

// testReadWriteCrashes ends readers and writers of both languages.
func (c *compat) testReadWriteCrashes(t *testing.T) {
	role := func(r string) taking { return taking{[]string{memberRole + "=" + r}, peer.Command{"kind": r}} }
	for _, roles := range []struct {
		victim, living string
		moments        []string
	}{
		{"write", "write", nil},
		{"read", "write", []string{"while it holds", "just after its wake-up"}},
		{"write", "read", []string{"while it holds", "just after its wake-up"}},
	} {
		c.crashes(t, crashKind{
			row:     fmt.Sprintf("%s, then %s: ", roles.victim, roles.living),
			channel: codec.ReadWriteChannel, parks: 2 * rwParks, victim: role(roles.victim), living: role(roles.living), moments: roles.moments,
			hold: func(t *testing.T, client *redlatch.Client, name string) *rlock.Hold {
				t.Helper()
				return held(t)(rreadwritelock.New(client, name).Write().Lock(t.Context(), veryLong))
			},
		})
	}
}
