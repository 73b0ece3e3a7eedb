package cluster

import (
	"time"

	"github.com/redlatch/redlatch/internal/replication"
	"github.com/redlatch/redlatch/transport"
)

// syncing is what a call asks of the replicas of the node that it comes to.
type syncing struct {
	replicas int
	until    time.Time // when its time is over, however many nodes it is sent to
	have     int64     // replicas that are known to have what it wrote
}

// Replicate is part of transport.Replicator. It sends the call and WAIT on a connection
// of its own to the master of the first key's slot, which is made for the first of them
// and closed after a minute without any. Calls to one node share a WAIT.
func (c *Cluster) Replicate(call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
	s := &syncing{replicas: replicas, until: time.Now().Add(timeout)}
	t := c.newRoutedCall(call, func(reply any, err error) {
		if err != nil {
			s.have = 0
		}
		done(reply, s.have, err)
	})
	t.sync = s
	t.depart()
}

// copiesOn sees to it that replicas of n can be waited for, mu held.
func (c *Cluster) copiesOn(n *node) {
	if n.copies != nil {
		return
	}
	n.copies = replication.New(replication.Config{
		Dial: c.dialTo(n.addr), DialTimeout: c.cfg.Conn.DialTimeout, Command: c.cfg.Conn.Command, Replaced: n.mux.Reconnected,
	})
}

// send hands the call to the node that it has boarded.
func (s *syncing) send(t *routedCall) {
	copies, left := t.node.copies, time.Until(s.until)
	if t.hops > 0 {
		copies.Redirect(t.call, s.replicas, left, t.replicated, t.asking)
		return
	}
	copies.Replicate(t.call, s.replicas, left, t.replicated)
}

// replicated is the call's outcome at a node whose replicas were waited for. When
// another node serves the slot by now, they are not the ones that matter.
func (t *routedCall) replicated(reply any, have int64, err error) {
	c := t.c
	c.mu.Lock()
	if t.slot >= 0 && !t.asking && c.table[t.slot] != t.node {
		have = 0
	}
	c.mu.Unlock()
	t.sync.have = have
	t.arrived(reply, err)
}
