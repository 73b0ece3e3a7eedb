package stress

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/test/stress/internal/history"
	"github.com/redlatch/redlatch/test/stress/internal/worker"
)

// TestPermitStress is what `make stress RUN=TestPermitStress` runs, for -duration: half of it permits of
// Redlatch alone, all that can be broken, and half beside two live Redissons.
func TestPermitStress(t *testing.T) {
	p := plan{
		seed: chooseSeed(t, "stress-permits"), duration: *duration / 2, round: 30 * time.Second, gap: usualGap,
		kinds: remembering, keys: semaphores(6, 3, []int{1, 3, 5}, short, middling),
		habits: worker.Usual(), workers: 4, callers: 10,
	}
	t.Run("the server remembers", func(t *testing.T) { runAndReport(t, "permits", p) })
	// All faults: after a lost reply Redisson sends its attempt again, which takes permits twice
	// for the same ids. So some may be lost, and never too many are out.
	p.workers, p.callers = 3, 5
	p.keys = semaphores(4, 1, []int{1, 3, 5}, short, middling)
	inexact(p.keys)
	for _, release := range []string{"4.3.1", "4.7.0"} {
		program, ok := findJava(t, release)
		require.True(t, ok, "this run is about Redisson: scripts/compat.sh %s", release)
		p.java = append(p.java, program)
	}
	t.Run("Redisson takes part", func(t *testing.T) { runAndReport(t, "permits with Redisson", p) })
}

// inexact says of semaphores that permits of theirs can be lost.
func inexact(keys []worker.Key) {
	for i := range keys {
		keys[i].Exact = false
	}
}

// supply sets the permits of the semaphores for a round.
func (c *campaign) supply(t *testing.T) {
	t.Helper()
	for _, key := range c.plan.keys {
		if key.Permits > 0 {
			c.server.Do(t, "SET", key.At(c.round), key.Permits, "NX")
		}
	}
}

// stock reads what the server has of a semaphore: how many permits are available, how many have
// leases, and how many have one that is over. What it answers is of one moment.
const stock = `local now = redis.call('TIME')
local over = redis.call('ZCOUNT', KEYS[2], 0, now[1] * 1000 + math.floor(now[2] / 1000))
return {tonumber(redis.call('GET', KEYS[1]) or '-1'), redis.call('ZCARD', KEYS[2]) - over, over}`

// permitsAtRest are what the semaphores have at rest that they must not have: permits out that come
// not back by their leases, permits that were lost, and permits that were never set.
func (c *campaign) permitsAtRest(t *testing.T) (findings []history.Finding) {
	t.Helper()
	deadline := time.Now().Add(c.longestLease() + settleBound)
	for _, key := range c.plan.keys {
		if key.Permits == 0 {
			continue
		}
		var has []int64
		for ; ; time.Sleep(100 * ms) {
			var err error
			has, err = redis.Int64s(c.server.Do(t, "EVAL", stock, 2, key.At(c.round), codec.PermitsKey(key.Name)), nil)
			require.NoError(t, err)
			if key.Counter || has[1] == 0 || time.Now().After(deadline) {
				break
			}
		}
		free, set := has[0]+has[2], int64(key.Permits)
		if has[1] > 0 || free > set || !key.Counter && len(c.java) == 0 && free < set {
			findings = append(findings, history.Finding{Check: "at rest", What: fmt.Sprintf(
				"%s has %d permits of %d, and %d that no holder has", key.At(c.round), free, set, has[1])})
		}
		if !key.Counter {
			c.report.Missing += int(set - free)
			c.restock(t, key)
		}
	}
	return findings
}

// restock gives permits back whose leases are over, and those that a Redisson has lost.
func (c *campaign) restock(t *testing.T, key worker.Key) {
	t.Helper()
	client, err := redlatch.Open(t.Context(), c.server.URL())
	require.NoError(t, err)
	sem := rsemaphore.NewExpirable(client, key.Name)
	if hold, err := sem.TryAcquire(t.Context(), 1); err == nil { // it gives the others back
		require.NoError(t, hold.Release())
	}
	if len(c.java) > 0 {
		require.NoError(t, sem.SetPermits(t.Context(), key.Permits))
	}
	require.NoError(t, client.Close())
	require.EqualValues(t, 0, c.server.Do(t, "EXISTS", codec.PermitsKey(key.Name)), key.Name)
}

// takeAway deletes the semaphores, which stay when all is over, and finds those that have more
// permits than were set.
func (c *campaign) takeAway(t *testing.T) (findings []history.Finding) {
	t.Helper()
	for _, key := range c.plan.keys {
		if key.Permits == 0 {
			continue
		}
		for round := 1; round <= c.round; round++ {
			name := key.At(round)
			n, err := redis.Int(c.server.Do(t, "GETDEL", name), nil)
			if err == nil && n > key.Permits {
				findings = append(findings, history.Finding{Check: "in the end", What: fmt.Sprintf("%s has %d permits of %d", name, n, key.Permits)})
			}
		}
	}
	return findings
}

// permitSession is one acquisition of a thread of a Redisson. What is recorded of a hold is what
// its lease promises: Redisson does not renew permits.
func (r *redisson) permitSession(id, thread string, key worker.Key, rnd *rand.Rand) {
	n := 1 + rnd.IntN(min(3, key.Permits))
	command := peer.Command{"op": "call", "client": "c", "thread": thread, "name": key.Name, "kind": "permits"}
	called := history.Now()
	reply, err := r.peer.Go(command.With(peer.Command{
		"method": "tryAcquire", "args": []any{n, 3000, key.Lease.Milliseconds(), "ms"},
	})).Wait(javaBound)
	granted := history.Now()
	var ids []string
	if err != nil || reply.Into(&ids) != nil || len(ids) == 0 {
		return
	}
	valid := called + key.Lease
	var marks []string
	mark := func() {
		if entry := r.mark(key.Name); history.Now() < valid {
			marks = append(marks, entry)
		}
	}
	mark()
	time.Sleep(time.Duration(rnd.Int64N(int64(100 * ms)))) // this is the work
	mark()
	write := func(rec history.Record) {
		rec.P, rec.Key, rec.Hold = r.name, key.Name, id
		r.log.Write(rec)
	}
	r.log.Write(history.Record{T: called, P: r.name, Kind: history.Call, ID: id, Op: "redisson", Key: key.Name, Wait: javaBound})
	r.log.Write(history.Record{T: granted, P: r.name, Kind: history.Return, ID: id})
	write(history.Record{
		T: granted, Kind: history.Grant, ID: id, Owner: strings.Join(ids, ","), Lease: key.Lease,
		Permits: int64(n), Most: int64(key.Permits),
	})
	write(history.Record{T: granted, Kind: history.Valid, Until: valid})
	for _, entry := range marks {
		write(history.Record{Kind: history.Mark, Entry: entry})
	}
	if rnd.IntN(20) == 0 {
		return // to its lease
	}
	write(history.Record{Kind: history.Give, Op: "release"})
	write(history.Record{Kind: history.Call, ID: id + "u", Op: "release", Wait: javaBound})
	_, err = r.peer.Go(command.With(peer.Command{"method": "release", "args": []any{ids}})).Wait(javaBound)
	class := ""
	if err != nil {
		class = "redisson"
	}
	write(history.Record{Kind: history.Return, ID: id + "u", Err: class})
}
