package cluster

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/pubsub"
	"github.com/redlatch/redlatch/internal/replication"
	"github.com/redlatch/redlatch/internal/subcount"
	"github.com/redlatch/redlatch/transport"
)

// tagShift is the lowest bit of a node's tag in its connections' names.
const tagShift = 36

// formerTime is how long a former master keeps its connections.
const formerTime = time.Minute

var errNoFence = errors.New("redlatch: no cluster node knows the call's connection")

type kind int

const (
	classic kind = iota // SUBSCRIBE
	sharded             // SSUBSCRIBE
	kinds
)

func published(command string) kind {
	if command == "SPUBLISH" {
		return sharded
	}
	return classic
}

// node is a node that is or was a master, or that was queried for the topology.
type node struct {
	addr   string
	tag    int64
	mux    *mux.Mux
	subs   [kinds]*pubsub.Subscriber
	counts [kinds]*subcount.Counter
	copies *replication.Batcher

	// Guarded by Cluster.mu.
	pending     int
	channelSubs int
	left        time.Time // when it was demoted or created; zero for a master
	served      bool
}

// node returns the node at addr, and creates it if necessary. It does not do I/O. It is called with
// c.mu held.
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
	for k, publish := range [kinds]string{classic: "PUBLISH", sharded: "SPUBLISH"} {
		n.subs[k] = pubsub.New(pubsub.Config{
			Dial: m.Dial, DialTimeout: m.DialTimeout, Logger: m.Logger, Sharded: kind(k) == sharded,
			OnLost: func(error) { c.unsubscribed(n, kind(k)) }, OnReconnect: c.cfg.Conn.OnReconnect("subscriptions"),
		})
		n.counts[k] = subcount.New(subcount.Config{
			Master:   n.mux,
			Replica:  func(addr string) subcount.Replica { return mux.New(c.muxConfig(addr)) },
			Replicas: n.replicas,
			Publish:  publish, Command: c.cfg.Conn.Command,
		})
	}
	n.copies = replication.New(replication.Config{
		Dial: m.Dial, DialTimeout: m.DialTimeout, Command: c.cfg.Conn.Command, Replaced: n.mux.Reconnected,
	})
	c.nodes[addr], c.byTag[n.tag] = n, n
	return n
}

func (c *Cluster) muxConfig(addr string) mux.Config {
	return mux.Config{
		Dial:       func(ctx context.Context) (redis.Conn, error) { return c.cfg.Dial(ctx, addr) },
		ReplyLimit: c.cfg.Conn.ReplyLimit(), DialTimeout: c.cfg.Conn.DialTimeout, Logger: c.cfg.Conn.LoggerWith("node", addr),
	}
}

// replaced reports whether n, from which a reply is late, is no longer a master. If it still is
// one, it requests a refresh. A node that has never been a master is only slow.
func (c *Cluster) replaced(n *node) bool {
	c.mu.Lock()
	master, served := n.left.IsZero(), n.served
	c.mu.Unlock()
	if master {
		c.refresh()
	}
	return served && !master
}

func (n *node) close() {
	for k := range kinds {
		_ = n.subs[k].Close()
		n.counts[k].Close()
	}
	n.copies.Close()
	_ = n.mux.Close()
}

// retire closes unused nodes that ceased to be masters a minute ago. It is called with c.mu held.
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

// Master is one master of a cluster, for commands such as SCAN. It is safe for concurrent use.
type Master struct {
	of   *Cluster
	node *node
}

// Addr returns the master's host:port.
func (m Master) Addr() string { return m.node.addr }

// Start implements transport.Transport. It does not follow redirections, but returns them as
// errors.
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

// Close does nothing, because the connection belongs to the cluster.
func (Master) Close() error { return nil }

// Masters returns the masters of all slots. If they are not known yet, it waits for a refresh until
// ctx ends.
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

// Masters returns the addresses of a cluster's masters, in the order of their slots, given the
// CLUSTER SLOTS reply from the node at from.
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
