package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/replication"
	"github.com/redlatch/redlatch/internal/subcount"
	"github.com/redlatch/redlatch/pubsub"
	"github.com/redlatch/redlatch/transport"
)

// tagShift is where the tag of a node begins in the names of its connections.
const tagShift = 36

// formerTime is how long a node that is no master any more keeps its connections.
const formerTime = time.Minute

var errNoFence = errors.New("redlatch: the call's connection is not known to any node of the cluster")

// kind is a way to listen.
type kind int

const (
	classic kind = iota // SUBSCRIBE
	sharded             // SSUBSCRIBE
	kinds               // how many there are
)

// published is the kind that hears what command publishes.
func published(command string) kind {
	if command == "SPUBLISH" {
		return sharded
	}
	return classic
}

// node is a server that is or was a master, or that was asked for a refresh.
type node struct {
	addr string
	tag  int64
	mux  *mux.Mux

	// Guarded by Cluster.mu.
	pending     int       // calls under way
	channelSubs int       // channel subscriptions on it
	left        time.Time // when it ceased to be a master, or was made; zero: it is one
	served      bool      // it is a master, or was one
	subs        [kinds]*pubsub.Subscriber
	counts      [kinds]*subcount.Counter
	copies      *replication.Batcher // nil: replicas were never waited for
}

// node returns the node at addr, mu held.
func (c *Cluster) node(addr string) *node {
	if n := c.nodes[addr]; n != nil {
		return n
	}
	c.tags++
	n := &node{addr: addr, tag: c.tags << tagShift, left: time.Now()}
	m := c.muxConfig(addr)
	m.Tag, m.OnReconnect, m.OnLost = n.tag, func() { c.reconnected(n) }, func() { c.disconnected(n) }
	m.Gone = func() bool { return c.replaced(n) }
	n.mux = mux.New(m)
	c.nodes[addr], c.byTag[n.tag] = n, n
	return n
}

// muxConfig returns what connections for calls to the server at addr have in common.
func (c *Cluster) muxConfig(addr string) mux.Config {
	return mux.Config{
		Dial:       func(ctx context.Context) (redis.Conn, error) { return c.cfg.Dial(ctx, addr) },
		ReplyLimit: c.cfg.Conn.ReplyLimit(), DialTimeout: c.cfg.Conn.DialTimeout, Logger: c.cfg.Conn.LoggerWith("node", addr),
	}
}

// replaced reports whether n, which owes replies, is no master any more. While it is one,
// it has that looked into: what is called from now on may have another. A node that never
// was a master is only slow.
func (c *Cluster) replaced(n *node) bool {
	c.mu.Lock()
	master, served := n.left.IsZero(), n.served
	c.mu.Unlock()
	if master {
		c.refresh()
	}
	return served && !master
}

// subscriber returns what listens on n, mu held.
func (c *Cluster) subscriber(n *node, k kind) *pubsub.Subscriber {
	if n.subs[k] == nil {
		m := c.muxConfig(n.addr)
		n.subs[k] = pubsub.New(pubsub.Config{
			Dial: m.Dial, DialTimeout: m.DialTimeout, Logger: m.Logger, Sharded: k == sharded,
			OnLost: func(error) { c.unsubscribed(n, k) }, OnReconnect: c.cfg.Conn.OnReconnect("subscriptions"),
		})
	}
	return n.subs[k]
}

// close ends all connections of n. It must not be used afterwards.
func (n *node) close() {
	for k := range kinds {
		if n.subs[k] != nil {
			_ = n.subs[k].Close() // always nil
		}
		if n.counts[k] != nil {
			n.counts[k].Close()
		}
	}
	if n.copies != nil {
		n.copies.Close()
	}
	_ = n.mux.Close() // always nil
}

// retire closes the nodes that ceased to be masters a while ago, as far as nothing is
// under way on them, mu held.
func (c *Cluster) retire(now time.Time) {
	for addr, n := range c.nodes {
		if n.left.IsZero() || now.Sub(n.left) < formerTime || n.pending > 0 || n.channelSubs > 0 {
			continue
		}
		delete(c.nodes, addr)
		delete(c.byTag, n.tag)
		c.wg.Go(n.close)
	}
}

// Master is one master of a cluster, for commands about that server alone, such as SCAN. It is
// safe for concurrent use.
type Master struct {
	of   *Cluster
	node *node
}

// Addr returns host:port of the master.
func (m Master) Addr() string { return m.node.addr }

// Start is that of transport.Transport: the call goes to this server, whatever keys it has, and
// an answer that sends it elsewhere is its error.
func (m Master) Start(call *transport.Call, done transport.Done) {
	m.of.mu.Lock()
	m.node.pending++
	m.of.mu.Unlock()
	m.node.mux.Start(call, func(reply any, err error) {
		m.of.mu.Lock()
		m.node.pending--
		m.of.mu.Unlock()
		if _, moved := redirected(err, m.node.addr); err != nil && (moved || outdated(err)) {
			m.of.refresh()
		}
		done(reply, err)
	})
}

// Close leaves the connection to the cluster.
func (Master) Close() error { return nil }

// Masters returns the masters that serve slots, as they are known now; the first time it asks for
// them. It waits no longer than ctx says. A master that is none any more answers for a minute.
func (c *Cluster) Masters(ctx context.Context) (all []Master, err error) {
	if err := c.await(ctx, []string{""}); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[*node]bool{}
	for _, n := range c.table {
		if n != nil && !seen[n] {
			seen[n] = true
			all = append(all, Master{c, n})
		}
	}
	if len(all) == 0 {
		return nil, unserved(c.err)
	}
	return all, nil
}

// Masters returns the addresses of the masters of a cluster, each once, in the order of
// their slots, by what the node at from has answered to CLUSTER SLOTS.
func Masters(reply any, from string) ([]string, error) {
	spans, err := spansOf(reply, from)
	if err != nil {
		return nil, err
	}
	var masters []string
	for _, s := range spans {
		if !slices.Contains(masters, s.master) {
			masters = append(masters, s.master)
		}
	}
	return masters, nil
}
