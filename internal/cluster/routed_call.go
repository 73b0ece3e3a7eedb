package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch/internal/builtin"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/transport"
)

const maxHops = 5

type routedCall struct {
	c      *Cluster
	call   *transport.Call
	done   transport.Done
	sync   *syncing // nil unless the call waits for replicas
	slot   int      // -1 if any node will do
	hops   int
	node   *node
	asking bool // node is importing the slot
	// If any node will do, away contains the nodes to which the call could not be sent, and why is the first error.
	away []*node
	why  error

	// Set if the caller waits for the first node; see Cluster.Lead.
	ctx    context.Context //nolint:containedctx // the caller's
	caller builtin.Caller
}

func (c *Cluster) newRoutedCall(call *transport.Call, done transport.Done) *routedCall {
	t := &routedCall{c: c, call: call, done: done, slot: -1}
	if call.NumKeys > 0 {
		t.slot = transport.HashSlot(call.Key(0))
	}
	return t
}

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

// board is called with c.mu held.
func (t *routedCall) board(n *node) {
	n.pending++
	t.node = n
}

func (t *routedCall) send() {
	switch {
	case t.sync != nil:
		t.node.copies.Replicate(t.call, t.sync.replicas, time.Until(t.sync.until), t.replicated, t.asking)
	case t.asking:
		t.node.mux.Ask(t.call, t.arrived)
	case t.caller != nil && t.hops == 0:
		t.node.mux.Lead(t.ctx, t.call, t.arrived, t.caller)
	default:
		t.node.mux.Start(t.call, t.arrived)
	}
}

// master returns the master of slot, or nil if it is unknown. For slot -1, it returns any master that is not in
// except. It is called with c.mu held.
func (c *Cluster) master(slot int, except ...*node) *node {
	if slot >= 0 {
		return c.table[slot]
	}
	for _, n := range c.table {
		if n != nil && !slices.Contains(except, n) {
			return n
		}
	}
	return nil
}

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

func (t *routedCall) elsewhere(err error) {
	c := t.c
	if t.away = append(t.away, t.node); t.why == nil {
		t.why = err
	}
	c.mu.Lock()
	next := c.master(-1, t.away...)
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

func (t *routedCall) redirect(r redirection, why error) {
	c := t.c
	if r.addr == "" {
		c.refresh()
		t.done(nil, fmt.Errorf("%w: redirected to an unknown node: %w", transport.ErrNotSent, why))
		return
	}
	if t.hops++; t.hops > maxHops {
		c.refresh()
		t.done(nil, fmt.Errorf("%w: redirected %d times: %w", transport.ErrNotSent, maxHops, why))
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
		c.refresh() // other slots may have moved as well
	}
	t.send()
}

// settle makes n the master of slot. It is called with c.mu held.
func (c *Cluster) settle(slot int, n *node) {
	n.left, n.served = time.Time{}, true
	if c.table[slot] == n {
		return
	}
	c.table[slot] = n
	for s := range c.subs {
		if s.slot == slot {
			c.unsettle(s)
		}
	}
	broadcast(&c.changed)
}

type syncing struct {
	replicas int
	until    time.Time // for all nodes together
	have     int64     // replicas that are known to have the write
}

// Replicate implements transport.Replicator. It sends the call and WAIT to the master of the first
// key's slot.
func (c *Cluster) Replicate(call *transport.Call, replicas int, timeout time.Duration, done func(any, int64, error)) {
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

// replicated is the done callback for a call that was sent to a node. If another node now serves the slot,
// acknowledgments from replicas of the old node do not count.
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
