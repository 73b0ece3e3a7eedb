package stress

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/test/stress/internal/history"
)

const (
	// idleLimit is how long a lock may lie free in calm times with waiters. Waiters whose
	// wake-up was lost would wait for a lease.
	idleLimit = 5 * time.Second
	// slack is what a busy machine may add to the bound of a call.
	slack = 8 * time.Second
	// settleBound is how long leftovers without a holder may be there after all is healed.
	settleBound = 10 * time.Second
)

// rest brings all clients to rest and judges the round.
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
		c.owners.Excuse(left.owner, "the server refused to take it out, in an earlier round")
	}
}

// find reports what was found.
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

// unexpectedOwners are owners on the server, holders or waiters, that no process has left there.
// Calls in doubt have time to be resolved in the background.
func (c *campaign) unexpectedOwners(t *testing.T) []history.Finding {
	t.Helper()
	for deadline := time.Now().Add(settleBound); ; time.Sleep(200 * ms) {
		var findings []history.Finding
		for _, left := range c.unexplained(t) {
			findings = append(findings, left.finding)
		}
		if len(findings) == 0 || time.Now().After(deadline) {
			return findings
		}
	}
}

// leftover is an owner that the server has, and the finding about it.
type leftover struct {
	owner   string
	finding history.Finding
}

// unexplained are the owners on the server that the history does not explain.
func (c *campaign) unexplained(t *testing.T) (all []leftover) {
	t.Helper()
	for _, key := range c.plan.keys {
		if key.Permits > 0 {
			continue // see permitsAtRest
		}
		for _, field := range c.strings(t, "HKEYS", key.Name) {
			owner, _ := codec.WriterOf(field)
			if key.ReadWrite && field == codec.ModeField {
				continue
			}
			if c.owners.Explains(owner) == "" {
				all = append(all, leftover{owner, history.Finding{Check: "leftover", What: key.Name + " is held by " + owner + ", which no live hold has"}})
			}
		}
		for _, owner := range c.strings(t, "LRANGE", queueOf(key.Name), 0, -1) {
			if c.owners.Explains(owner) == "" {
				all = append(all, leftover{owner, history.Finding{Check: "queue", What: owner + " is queued for " + key.Name + ", and has no waiter"}})
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

// leave ends all processes, lets leases run out and dead waiters be evicted, and checks
// that nothing is left on any server.
func (c *campaign) leave(t *testing.T) {
	t.Helper()
	var findings []history.Finding
	c.sendAll(t, "quit")
	for _, p := range c.slots {
		line := p.expect(t, "bye")
		if left, err := strconv.Atoi(strings.TrimPrefix(line, "bye ")); err != nil || left > 0 {
			findings = append(findings, history.Finding{Check: "goroutines", What: p.name + " said " + line})
		}
		<-p.done
	}
	for _, p := range c.all {
		if words := p.lastOutput(); words != "" {
			findings = append(findings, history.Finding{Check: "words", What: p.name + " said " + words})
		}
	}
	for _, java := range c.java {
		java.peer.Close()
	}
	c.visitAll(t)
	findings = append(findings, c.takeAway(t)...)
	deadline := time.Now().Add(c.longestLease() + settleBound)
	for ; ; time.Sleep(200 * ms) {
		left := c.leftovers(t)
		if len(left) == 0 || time.Now().After(deadline) {
			c.find(t, append(findings, left...))
			return
		}
	}
}

// longestLease is how long a lock may stay that was left to its lease.
func (c *campaign) longestLease() (longest time.Duration) {
	for _, k := range c.plan.keys {
		longest = max(longest, k.Lease)
	}
	return longest
}

// visitAll takes every fair lock once, after the waiters that died in its queue.
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

// leftovers is what the server still has.
func (c *campaign) leftovers(t *testing.T) (findings []history.Finding) {
	t.Helper()
	add := func(what string, names []string) {
		for _, name := range names {
			findings = append(findings, history.Finding{Check: "left behind", What: what + " " + name})
		}
	}
	// Redisson leaves the counters of tokens, too: they must not begin again.
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
