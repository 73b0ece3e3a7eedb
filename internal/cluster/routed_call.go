package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/replication"
	"github.com/redlatch/redlatch/transport"
)

// maxHops is how often a call follows MOVED and ASK.
const maxHops = 5

// routedCall is a call on its way.
type routedCall struct {
	c    *Cluster
	call *transport.Call
	done transport.Done
	sync *syncing // nil: replicas are not waited for
	slot int      // -1: any node will do
	hops int
	node *node // where it is
	// asking is true where the slot is only on its way to the node.
	asking bool
	// away are the masters that a call for any node was not sent to, and why the first was not.
	away []*node
	why  error

	// The caller may be used to wait for the first node: see Cluster.Lead.
	ctx    context.Context //nolint:containedctx // of that caller
	caller transport.Caller
}

// newRoutedCall prepares a call for its way.
func (c *Cluster) newRoutedCall(call *transport.Call, done transport.Done) *routedCall {
	t := &routedCall{c: c, call: call, done: done, slot: -1}
	if call.NumKeys > 0 {
		t.slot = transport.HashSlot(call.Key(0))
	}
	return t
}

// depart sends the call where its slot is served, or has it wait for a refresh. It returns
// false when the call was not sent.
func (t *routedCall) depart() bool {
	c := t.c
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		t.done(nil, errClosedNotSent)
		return false
	}
	n := c.master(t.slot)
	if n == nil {
		t.caller = nil
		c.begin()
		c.waiting = append(c.waiting, t)
		c.mu.Unlock()
		c.refresh()
		return false
	}
	t.board(n)
	c.mu.Unlock()
	t.send()
	return true
}

// board counts the call in at n, mu held.
func (t *routedCall) board(n *node) {
	n.pending++
	t.node = n
	if t.sync != nil {
		t.c.copiesOn(n)
	}
}

// send hands the call to the node that it has boarded.
func (t *routedCall) send() {
	switch {
	case t.sync != nil:
		t.sync.send(t)
	case t.hops > 0:
		t.node.mux.Redirect(t.call, t.arrived, t.asking)
	case t.caller != nil:
		t.node.mux.Lead(t.ctx, t.call, t.arrived, t.caller)
	default:
		t.node.mux.Start(t.call, t.arrived)
	}
}

// master returns the node that serves slot, or any master for -1; nil when none is
// known, mu held.
func (c *Cluster) master(slot int) *node {
	if slot >= 0 {
		return c.table[slot]
	}
	for _, n := range c.table {
		if n != nil {
			return n
		}
	}
	return nil
}

// arrived is the call's done at a node.
func (t *routedCall) arrived(reply any, err error) {
	c, from := t.c, t.node
	c.mu.Lock()
	from.pending--
	closed := c.closed
	c.mu.Unlock()
	if err == nil || closed {
		t.done(reply, err)
		return
	}
	if r, ok := redirected(err, from.addr); ok {
		t.redirect(r, err)
		return
	}
	if outdated(err) {
		c.refresh()
		err = redisconn.AtNode(from.addr, err)
	}
	if t.slot < 0 && errors.Is(err, transport.ErrNotSent) {
		t.elsewhere(err)
		return
	}
	t.done(nil, err)
}

// elsewhere sends a call that any node can serve to a master that it was not sent to before. When
// there is none, the call ends with the error of the first.
func (t *routedCall) elsewhere(err error) {
	c := t.c
	if t.away = append(t.away, t.node); t.why == nil {
		t.why = err
	}
	c.mu.Lock()
	var next *node
	for _, n := range c.table {
		if n != nil && !slices.Contains(t.away, n) {
			next = n
			break
		}
	}
	if next == nil || c.closed {
		c.mu.Unlock()
		t.done(nil, t.why)
		return
	}
	t.hops++
	t.board(next)
	c.mu.Unlock()
	t.send()
}

// redirect sends the call where a node has sent it, which has not run it.
func (t *routedCall) redirect(r redirection, why error) {
	c := t.c
	if r.addr == "" {
		c.refresh()
		t.done(nil, fmt.Errorf("%w: sent to a node that is not known yet: %w", transport.ErrNotSent, why))
		return
	}
	if t.hops++; t.hops > maxHops {
		c.refresh()
		t.done(nil, fmt.Errorf("%w: sent from node to node %d times: %w", transport.ErrNotSent, maxHops, why))
		return
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		t.done(nil, errClosedNotSent)
		return
	}
	n := c.node(r.addr)
	if !r.asking {
		c.settle(r.slot, n)
	}
	t.asking = r.asking
	t.board(n)
	c.mu.Unlock()
	if !r.asking {
		c.refresh() // where one slot has gone, others may have
	}
	t.send()
}

// settle notes that n serves slot, mu held.
func (c *Cluster) settle(slot int, n *node) {
	n.left, n.served = never, true
	if c.table[slot] == n {
		return
	}
	c.table[slot] = n
	for s := range c.subs {
		if s.slot == slot {
			c.resubscriber.add(s)
		}
	}
	c.announceLocked()
}

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
	m := c.muxConfig(n.addr)
	n.copies = replication.New(replication.Config{
		Dial: m.Dial, DialTimeout: m.DialTimeout, Command: c.cfg.Conn.Command, Replaced: n.mux.Reconnected,
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
