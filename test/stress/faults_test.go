//go:build linux

package stress

import (
	"time"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/test/stress/internal/history"
)

// lane is the target of a fault. Faults in the same lane never overlap.
type lane string

const (
	server  lane = "server"
	network lane = "network"
	clients lane = "clients"
)

// fault is a kind of fault.
type fault struct {
	name        string
	lane        lane
	least, most time.Duration
	// begin starts the fault and returns the function that ends it. forgot is the key that the server lost, "*" if it
	// lost all keys, or empty.
	begin func(c *campaign, e event) (end func(), forgot string)
	// after is the time for which a lock may stay free after the fault, and fairly is this time for a fair lock. If
	// lease is set, the fault may leave locks that have to expire, so the lease is added.
	after, fairly time.Duration
	lease         bool
	pause         time.Duration // additional pause before the next fault in the lane
	// odd faults occur only in every second round. Requests that are sent during such a fault fail and are not
	// retried, so the keys that remain on the server are not judged in these rounds.
	odd bool
}

const ms = time.Millisecond

// stopAndGo returns a fault that is started by begin and ended by end.
func stopAndGo(begin, end func(c *campaign)) func(*campaign, event) (func(), string) {
	return func(c *campaign, _ event) (func(), string) {
		begin(c)
		return func() { end(c) }, ""
	}
}

// atOnce returns a fault that does not have to be ended.
func atOnce(f func(c *campaign)) func(*campaign, event) (func(), string) {
	return stopAndGo(f, func(*campaign) {})
}

func hold(dirs ...redistest.Direction) func(*campaign, event) (func(), string) {
	return stopAndGo(
		func(c *campaign) { c.proxy.Blackhole(dirs...) },
		func(c *campaign) { c.proxy.Heal(dirs...) })
}

// After an outage of the locks' server, it takes several requests to resolve calls whose results are uncertain, and
// waiters may need a heartbeat to be queued again.
const (
	settled    = 6 * time.Second
	heartbeats = 15 * time.Second
)

// remembering contains the faults in which the server does not lose data.
var remembering = []*fault{
	{
		name: "server stopped", lane: server, least: 100 * ms, most: 3 * time.Second, after: settled, fairly: heartbeats,
		begin: stopAndGo(
			func(c *campaign) { c.server.Pause() },
			func(c *campaign) { c.server.Resume() }),
	},
	{
		name: "server killed", lane: server, least: 100 * ms, most: 2 * time.Second, after: settled, fairly: heartbeats,
		begin: stopAndGo(
			func(c *campaign) { c.server.Kill() },
			func(c *campaign) { c.server.Restart() }),
	},
	{
		name: "connections killed", lane: server, after: settled, fairly: heartbeats,
		begin: atOnce(func(c *campaign) { c.server.KillClients(c.t, "normal") }),
	},
	unanswered,
	unsubscribed,
	{
		name: "connections refused", lane: server, least: 500 * ms, most: 3 * time.Second, after: settled, fairly: heartbeats,
		begin: stopAndGo(
			func(c *campaign) { c.proxy.Refuse(true); c.server.KillClients(c.t, "normal") },
			func(c *campaign) { c.proxy.Refuse(false) }),
	},
	{
		name: "commands paused", lane: server, least: 200 * ms, most: 3 * time.Second, after: settled, fairly: heartbeats,
		begin: atOnce(func(c *campaign) { c.server.Do(c.t, "CLIENT", "PAUSE", 1500, "WRITE") }),
	},
	flushed,
	{
		name: "rights taken", odd: true, lane: server, least: 500 * ms, most: 3 * time.Second, after: settled, fairly: heartbeats, lease: true,
		begin: stopAndGo(
			func(c *campaign) { c.server.Do(c.t, "ACL", "SETUSER", user, "-evalsha", "-eval") },
			func(c *campaign) { c.server.Do(c.t, "ACL", "SETUSER", user, "+evalsha", "+eval") }),
	},
	{
		name: "password changed", odd: true, lane: server, least: 500 * ms, most: 3 * time.Second, after: settled, fairly: heartbeats, lease: true,
		begin: stopAndGo(
			func(c *campaign) {
				c.server.Do(c.t, "ACL", "SETUSER", user, "resetpass", ">another")
				c.server.KillClients(c.t, "normal")
				c.server.KillClients(c.t, "pubsub")
			},
			func(c *campaign) { c.server.Do(c.t, "ACL", "SETUSER", user, "resetpass", ">"+password) }),
	},
	{
		name: "requests held", lane: network, least: 300 * ms, most: 4 * time.Second, after: settled, fairly: heartbeats,
		begin: hold(redistest.ToServer),
	},
	{
		name: "replies held", lane: network, least: 300 * ms, most: 4 * time.Second, after: settled, fairly: heartbeats,
		begin: hold(redistest.ToClient),
	},
	{
		name: "both held", lane: network, least: 300 * ms, most: 4 * time.Second, after: settled, fairly: heartbeats,
		begin: hold(),
	},
	slow,
	{
		name: "connections reset", lane: network, after: settled, fairly: heartbeats,
		begin: atOnce(func(c *campaign) { c.proxy.Reset() }),
	},
	cut,
	late,
	lateOne,
	stopped,
	killed,
	{
		name: "client exited", lane: clients, least: 100 * ms, most: 2 * time.Second, after: settled, fairly: heartbeats + 10*time.Second, lease: true,
		begin: func(c *campaign, e event) (func(), string) {
			c.member(e.pick).exit(c.t)
			return func() { c.replace(c.t, e.pick) }, ""
		},
	},
}

// safeForRedisson contains the faults after which Redisson does not leave a lock without a holder. After a lost reply,
// for example, Redisson resends the acquisition, which is then counted twice.
var safeForRedisson = []*fault{unanswered, flushed, stopped, killed}

// Faults of special campaigns.
var (
	unanswered = &fault{
		name: "listeners killed", lane: server, after: 2 * time.Second, fairly: 2 * time.Second,
		begin: atOnce(func(c *campaign) { c.server.KillClients(c.t, "pubsub") }),
	}
	flushed = &fault{
		name: "scripts flushed", lane: server,
		begin: atOnce(func(c *campaign) { c.server.Do(c.t, "SCRIPT", "FLUSH") }),
	}
	stopped = &fault{
		name: "client stopped", lane: clients, least: 300 * ms, most: 7 * time.Second, after: settled, fairly: heartbeats, lease: true,
		begin: func(c *campaign, e event) (func(), string) {
			p := c.member(e.pick)
			p.stop(c.t)
			return func() { p.resume(c.t, c.log) }, ""
		},
	}
	killed = &fault{
		name: "client killed", lane: clients, least: 100 * ms, most: 2 * time.Second, after: settled, fairly: heartbeats + 10*time.Second, lease: true,
		begin: func(c *campaign, e event) (func(), string) {
			c.member(e.pick).kill(c.t, c.log)
			return func() { c.replace(c.t, e.pick) }, ""
		},
	}
	unsubscribed = &fault{
		name: "listening is denied", lane: server, least: 300 * ms, most: 2 * time.Second, after: 2 * time.Second, fairly: 2 * time.Second,
		begin: stopAndGo(
			func(c *campaign) { c.proxy.Refuse(true); c.server.KillClients(c.t, "pubsub") },
			func(c *campaign) { c.proxy.Refuse(false) }),
	}
	// unsubscribedOnce leaves enough time to notice that waiters were not woken.
	unsubscribedOnce = &fault{
		name: unsubscribed.name, lane: server, least: time.Second, most: 2 * time.Second, after: unsubscribed.after, begin: unsubscribed.begin, pause: time.Minute,
	}
	slow = &fault{
		name: "slow", lane: network, least: time.Second, most: 4 * time.Second, after: settled, fairly: heartbeats,
		begin: func(c *campaign, e event) (func(), string) {
			dir := redistest.Direction(e.pick % 2)
			c.proxy.Latency(dir, 250*ms+time.Duration(e.pick/2%350)*ms)
			return func() { c.proxy.Latency(dir, 0) }, ""
		},
	}
	cut = &fault{
		name: "reply cut", lane: network, most: 300 * ms, after: settled, fairly: heartbeats,
		begin: func(c *campaign, e event) (func(), string) {
			c.proxy.CutReplyAfter(int(e.pick % 12))
			return func() {}, ""
		},
	}
	// late delivers requests after their clients have timed out, like a slow network.
	late = &fault{
		name: "requests late", lane: network, least: 500 * ms, most: 3 * time.Second, after: settled, fairly: heartbeats,
		begin: func(c *campaign, _ event) (func(), string) {
			c.proxy.KeepHalfDead(true)
			c.proxy.Blackhole(redistest.ToServer)
			return func() {
				c.proxy.Reset()
				c.proxy.Heal(redistest.ToServer)
				c.proxy.KeepHalfDead(false)
			}, ""
		},
	}
	// lateOne delays the requests on a single connection until its client has opened a new one.
	lateOne = &fault{
		name: "one connection late", lane: network, least: 2500 * ms, most: 4 * time.Second, after: settled, fairly: heartbeats,
		begin: func(c *campaign, e event) (func(), string) {
			c.proxy.KeepHalfDead(true)
			held := c.proxy.HoldMatching(redistest.ToServer, c.plan.keys[e.pick%uint64(len(c.plan.keys))].Name)
			return func() {
				held.Release()
				c.proxy.KeepHalfDead(false)
			}, ""
		},
	}
)

// forgetting contains the faults in which the server loses data.
var forgetting = []*fault{
	deleted,
	{
		name: "flushed", lane: server, after: settled, fairly: heartbeats,
		begin: func(c *campaign, _ event) (func(), string) {
			c.server.Do(c.t, "FLUSHALL")
			return func() {}, "*"
		},
	},
	{
		name: "restarted empty", lane: server, least: 100 * ms, most: time.Second, after: settled, fairly: heartbeats,
		begin: func(c *campaign, _ event) (func(), string) {
			c.server.Kill()
			return c.server.Restart, "*"
		},
	},
	{
		name: history.Evicted, lane: server, least: 50 * ms, most: 300 * ms, after: settled, fairly: heartbeats,
		begin: func(c *campaign, _ event) (func(), string) {
			c.server.Do(c.t, "CONFIG", "SET", "maxmemory-policy", "allkeys-random")
			c.server.Do(c.t, "CONFIG", "SET", "maxmemory", "1")
			return func() { c.server.Do(c.t, "CONFIG", "SET", "maxmemory", "0") }, "*"
		},
	},
}

// deleted deletes one lock on the server.
var deleted = &fault{
	name: "deleted", lane: server, most: 200 * ms, after: settled, fairly: heartbeats,
	begin: func(c *campaign, e event) (func(), string) {
		key := c.plan.keys[e.pick%uint64(len(c.plan.keys))].Name
		c.server.Do(c.t, "DEL", key)
		return func() {}, key
	},
}
