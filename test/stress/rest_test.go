//go:build linux

package stress

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/test/stress/internal/history"
	"github.com/redlatch/redlatch/test/stress/internal/worker"
)

const (
	// idleLimit is the time for which a lock with waiters may stay free in a calm period. A waiter that missed its
	// wake-up would wait for the length of a lease.
	idleLimit = 5 * time.Second
	// slack is added to the time limit of calls, because the machine may be busy.
	slack = 8 * time.Second
	// settleBound is the time for which owners without a holder may remain after all faults have ended.
	settleBound = 10 * time.Second
)

// rest stops all clients and judges the round.
func (c *campaign) rest(t *testing.T) {
	t.Helper()
	c.sendAll(t, "drain")
	for _, p := range c.slots {
		p.expect(t, "drained")
	}
	var records []history.Record
	for _, path := range c.paths {
		part, err := c.reader.Next(path)
		require.NoError(t, err)
		records = append(records, part...)
	}
	c.owners.Add(records)
	story := history.NewStory(records)
	limits := history.Limits{Slack: slack, Idle: idleLimit, Aftermath: c.aftermath}
	c.report.add(story, limits)
	c.find(t, story.Judge(limits))
	c.find(t, c.permitsAtRest(t))
	if !slices.ContainsFunc(story.Faults, func(f history.Record) bool { return c.byName[f.Op].odd }) {
		c.find(t, c.unexpectedOwners(t))
		c.report.Judged++
		return
	}
	for _, left := range c.unexplained(t) {
		c.owners.Excuse(left.owner, "the server rejected its removal in an earlier round")
	}
}

// find reports the findings.
func (c *campaign) find(t *testing.T, findings []history.Finding) {
	t.Helper()
	const most = 10
	for i, f := range findings {
		if i == most {
			t.Errorf("and %d more", len(findings)-most)
			break
		}
		t.Errorf("%v", f)
	}
	c.report.Findings += len(findings)
	c.failed = c.failed || len(findings) > 0
}

// unexpectedOwners returns findings for owners on the server, holders or waiters, that were not left there by a
// process. It waits until calls with uncertain results have been resolved in the background.
func (c *campaign) unexpectedOwners(t *testing.T) []history.Finding {
	t.Helper()
	for deadline := time.Now().Add(settleBound); ; <-time.After(200 * ms) {
		var findings []history.Finding
		for _, left := range c.unexplained(t) {
			findings = append(findings, left.finding)
		}
		if len(findings) == 0 || time.Now().After(deadline) {
			return findings
		}
	}
}

// leftover is an owner on the server and the finding about it.
type leftover struct {
	owner   string
	finding history.Finding
}

// unexplained returns the owners on the server that the history does not explain.
func (c *campaign) unexplained(t *testing.T) (all []leftover) {
	t.Helper()
	for _, key := range c.plan.keys {
		if key.Permits > 0 {
			continue // see permitsAtRest
		}
		for _, field := range c.strings(t, "HKEYS", key.Name) {
			owner, _ := protocol.WriterOf(field)
			if key.ReadWrite && field == protocol.ModeField {
				continue
			}
			if c.owners.Explains(owner) == "" {
				all = append(all, leftover{owner, history.Finding{Check: "leftover", What: key.Name + " is held by " + owner + ", which has no live hold"}})
			}
		}
		for _, owner := range c.strings(t, "LRANGE", queueOf(key.Name), 0, -1) {
			if c.owners.Explains(owner) == "" {
				all = append(all, leftover{owner, history.Finding{Check: "queue", What: owner + " is queued for " + key.Name + " but has no waiter"}})
			}
		}
	}
	return all
}

func queueOf(key string) string { return "redisson_lock_queue:{" + key + "}" }

func (c *campaign) strings(t *testing.T, cmd string, args ...any) []string {
	t.Helper()
	list, err := redis.Strings(c.server.Do(t, cmd, args...), nil)
	require.NoError(t, err)
	return list
}

// leave ends all processes, waits until leases have expired and dead waiters were evicted, and
// checks that all servers are empty.
func (c *campaign) leave(t *testing.T) {
	t.Helper()
	var findings []history.Finding
	c.sendAll(t, "quit")
	for _, p := range c.slots {
		line := p.expect(t, "bye")
		if left, err := strconv.Atoi(strings.TrimPrefix(line, "bye ")); err != nil || left > 0 {
			findings = append(findings, history.Finding{Check: "goroutines", What: p.name + " printed " + line})
		}
		<-p.done
	}
	for _, p := range c.all {
		if words := p.lastOutput(); words != "" {
			findings = append(findings, history.Finding{Check: "words", What: p.name + " printed " + words})
		}
	}
	for _, java := range c.java {
		java.peer.Close()
	}
	c.visitAll(t)
	findings = append(findings, c.takeAway(t)...)
	deadline := time.Now().Add(c.longestLease() + settleBound)
	for ; ; <-time.After(200 * ms) {
		left := c.leftovers(t)
		if len(left) == 0 || time.Now().After(deadline) {
			c.find(t, append(findings, left...))
			return
		}
	}
}

// longestLease returns the time for which an abandoned lock may remain.
func (c *campaign) longestLease() (longest time.Duration) {
	for _, k := range c.plan.keys {
		longest = max(longest, k.Lease)
	}
	return longest
}

// visitAll acquires every fair lock once, behind the dead waiters in its queue.
func (c *campaign) visitAll(t *testing.T) {
	t.Helper()
	client, err := redlatch.Open(t.Context(), c.server.URL(), redlatch.WithDeadWaiterGrace(5*time.Second))
	require.NoError(t, err)
	errs := make(chan error, len(c.plan.keys))
	for _, k := range c.plan.keys {
		go func() {
			if !k.Fair {
				errs <- nil
				return
			}
			errs <- rfairlock.New(client, k.Name).Do(t.Context(), func(context.Context) error { return nil },
				rlock.WithWait(c.longestLease()+time.Minute))
		}()
	}
	for range c.plan.keys {
		require.NoError(t, <-errs)
	}
	require.NoError(t, client.Close())
}

// leftovers returns findings for the keys, channels and connections still on the server.
func (c *campaign) leftovers(t *testing.T) (findings []history.Finding) {
	t.Helper()
	add := func(what string, names []string) {
		for _, name := range names {
			findings = append(findings, history.Finding{Check: "left behind", What: what + " " + name})
		}
	}
	// Like Redisson, the client keeps the counters of tokens, which must not restart.
	add("key", slices.DeleteFunc(c.strings(t, "KEYS", "*"), func(key string) bool {
		return strings.HasPrefix(key, "redisson_lock_token:")
	}))
	add("channel", c.server.Channels(t))
	if n := c.server.Clients(t); n > 0 {
		add("connections:", []string{strconv.Itoa(n)})
	}
	if n := c.proxy.Connections(); n > 0 {
		add("connections through the proxy:", []string{strconv.Itoa(n)})
	}
	return findings
}

// TestPermitStress runs for -duration (make stress RUN=TestPermitStress). In the first half of this time, it runs
// Redlatch alone with all faults. In the second half, two live Redisson clients also take part.
func TestPermitStress(t *testing.T) {
	p := plan{
		seed: chooseSeed(t), duration: *duration / 2, round: 30 * time.Second, gap: usualGap,
		kinds: remembering, keys: semaphores(6, 3, []int{1, 3, 5}, short, middling),
		habits: worker.Usual(), workers: 4, callers: 10,
	}
	t.Run("without data loss", func(t *testing.T) { runAndReport(t, "permits", p) })
	// All faults occur. After a lost reply, Redisson resends its attempt, which acquires permits twice for the same
	// IDs. Permits may be lost, but there must never be too many holders.
	p.workers, p.callers = 3, 5
	p.keys = semaphores(4, 1, []int{1, 3, 5}, short, middling)
	inexact(p.keys)
	for _, release := range []string{"4.3.1", "4.7.0"} {
		program, ok := findJava(t, release)
		require.True(t, ok, "this run needs Redisson: run scripts/compat.sh %s", release)
		p.java = append(p.java, program)
	}
	t.Run("with Redisson", func(t *testing.T) { runAndReport(t, "permits with Redisson", p) })
}

// inexact marks semaphores that may lose permits.
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

// stock atomically reads a semaphore: the available permits, those with a lease, and those whose
// lease has expired.
const stock = `local now = redis.call('TIME')
local over = redis.call('ZCOUNT', KEYS[2], 0, now[1] * 1000 + math.floor(now[2] / 1000))
return {tonumber(redis.call('GET', KEYS[1]) or '-1'), redis.call('ZCARD', KEYS[2]) - over, over}`

// permitsAtRest returns findings for held permits that do not expire with their leases, for lost permits, and for
// permits in excess of the limit.
func (c *campaign) permitsAtRest(t *testing.T) (findings []history.Finding) {
	t.Helper()
	deadline := time.Now().Add(c.longestLease() + settleBound)
	for _, key := range c.plan.keys {
		if key.Permits == 0 {
			continue
		}
		var has []int64
		for ; ; <-time.After(100 * ms) {
			var err error
			has, err = redis.Int64s(c.server.Do(t, "EVAL", stock, 2, key.At(c.round), protocol.PermitsKey(key.Name)), nil)
			require.NoError(t, err)
			if key.Counter || has[1] == 0 || time.Now().After(deadline) {
				break
			}
		}
		free, set := has[0]+has[2], int64(key.Permits)
		if has[1] > 0 || free > set || !key.Counter && len(c.java) == 0 && free < set {
			findings = append(findings, history.Finding{Check: "at rest", What: fmt.Sprintf(
				"%s has %d permits of %d, and %d without a holder", key.At(c.round), free, set, has[1])})
		}
		if !key.Counter {
			c.report.Missing += int(set - free)
			c.restock(t, key)
		}
	}
	return findings
}

// restock makes permits available whose leases have expired or that a Redisson client has lost.
func (c *campaign) restock(t *testing.T, key worker.Key) {
	t.Helper()
	client, err := redlatch.Open(t.Context(), c.server.URL())
	require.NoError(t, err)
	sem := rsemaphore.NewExpirable(client, key.Name)
	if hold, err := sem.TryAcquire(t.Context(), 1); err == nil { // returns the expired ones
		require.NoError(t, hold.Release())
	}
	if len(c.java) > 0 {
		require.NoError(t, sem.SetPermits(t.Context(), key.Permits))
	}
	require.NoError(t, client.Close())
	require.EqualValues(t, 0, c.server.Do(t, "EXISTS", protocol.PermitsKey(key.Name)), key.Name)
}

// takeAway deletes the semaphores, which outlive their holders, and finds those with too many
// permits.
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

// permitSession is one acquisition of permits by a Redisson thread. Its hold is recorded for the length of its lease,
// because Redisson does not renew permits.
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
	work(rnd)
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
		return // the permits expire with their lease
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
