package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

const (
	// between is the minimum time between two refreshes.
	between = 100 * time.Millisecond
	// hurry is how long a refresh waits for one node before it queries another as well.
	hurry = 250 * time.Millisecond
)

func (c *Cluster) runRefreshes() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-c.due:
		case <-c.ctx.Done():
			return
		}
		spans, err := c.ask()
		if c.ctx.Err() != nil {
			return
		}
		c.finish(spans, err)
		timer.Reset(between)
		select {
		case <-timer.C:
		case <-c.ctx.Done():
			return
		}
	}
}

type finding struct {
	spans []span
	err   error
}

// ask queries a node, and further nodes if it fails or its answer is late. It returns the first
// answer, or the first error.
func (c *Cluster) ask() ([]span, error) {
	ctx, cancel := context.WithTimeoutCause(c.ctx, c.cfg.Conn.Command,
		fmt.Errorf("no reply within %v: %w", c.cfg.Conn.Command, context.DeadlineExceeded))
	defer cancel()
	nodes := c.informants()
	came := make(chan finding, len(nodes))
	var first error
	timer := time.NewTimer(0)
	defer timer.Stop()
	for asked, answered := 0, 0; answered < len(nodes); {
		select {
		case <-timer.C:
			if asked < len(nodes) {
				c.askOne(ctx, nodes[asked], came)
				asked++
				timer.Reset(hurry)
			}
		case f := <-came:
			if f.err == nil {
				return f.spans, nil
			}
			if first == nil {
				first = f.err
			}
			answered++
			timer.Reset(0)
		case <-ctx.Done():
			return nil, errors.Join(first, context.Cause(ctx))
		}
	}
	if first == nil {
		first = errors.New("no cluster node is known")
	}
	return nil, first
}

func (c *Cluster) askOne(ctx context.Context, n *node, came chan<- finding) {
	c.mu.Lock()
	n.pending++
	c.mu.Unlock()
	c.wg.Go(func() {
		reply, err := mux.Do(ctx, n.mux, &transport.Call{Command: "CLUSTER", Args: []any{"SLOTS"}, Urgent: true})
		c.mu.Lock()
		n.pending--
		c.mu.Unlock()
		if err != nil {
			came <- finding{err: fmt.Errorf("%s: %w", n.addr, err)}
			return
		}
		spans, err := spansOf(reply, n.addr)
		if err == nil && len(spans) == 0 {
			err = fmt.Errorf("%s reports no node that serves slots", n.addr)
		}
		came <- finding{spans, err}
	})
}

func (c *Cluster) informants() []*node {
	seeds := c.cfg.Seeds
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	var masters, others []*node
	for _, n := range c.nodes {
		if n.left.IsZero() {
			masters = append(masters, n)
		}
	}
	for _, addr := range seeds {
		if n := c.node(addr); !n.left.IsZero() {
			others = append(others, n)
		}
	}
	shuffle(masters)
	shuffle(others)
	return append(masters, others...)
}

func shuffle(nodes []*node) {
	//nolint:gosec // spreading load needs no secrets
	rand.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
}

func (c *Cluster) finish(spans []span, err error) {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return
	}
	c.err = err
	moved := false
	if err == nil {
		moved = c.install(spans)
		c.retire(time.Now())
	}
	for s := range c.subs {
		c.unsettle(s) // which does nothing if its node is the same
	}
	failed := c.release()
	c.evictLocked(err)
	broadcast(&c.refreshed)
	c.mu.Unlock()
	for _, t := range failed {
		t.done(nil, unserved(err))
	}
	if moved {
		c.cfg.Conn.Logger.Info("redlatch: slots of the cluster have moved")
	}
}

// ErrUnserved means that no node names a master for a slot.
var ErrUnserved = errors.New("no cluster node serves the slot")

func unserved(err error) error {
	if err == nil {
		return fmt.Errorf("%w: %w", transport.ErrNotSent, ErrUnserved)
	}
	if errors.Is(err, transport.ErrUncertain) {
		err = errors.New(err.Error()) // its class belongs to another call
	}
	return fmt.Errorf("%w: cannot find the node that serves the slot: %w", transport.ErrNotSent, err)
}

// install stores spans and reports whether a slot has moved. It is called with c.mu held.
func (c *Cluster) install(spans []span) bool {
	var table [slots]*node
	replicas := map[string][]string{}
	for _, s := range spans {
		n := c.node(s.master)
		replicas[s.master] = s.replicas
		for slot := s.first; slot <= s.last; slot++ {
			table[slot] = n
		}
	}
	now, moved, fewer := time.Now(), false, false
	for slot, n := range table {
		moved = moved || c.table[slot] != nil && c.table[slot] != n
	}
	for addr, n := range c.nodes {
		_, master := replicas[addr]
		switch {
		case master:
			n.left, n.served = time.Time{}, true
		case n.left.IsZero():
			n.left, fewer = now, true
		}
	}
	c.table, c.replicas = table, replicas
	if fewer {
		broadcast(&c.lost)
	}
	if moved {
		broadcast(&c.changed)
	}
	return moved
}

// release sends the waiting calls in order, and returns the calls without a known master. The
// caller must hold c.mu. No done callback runs here, because the muxes of masters are open until
// the cluster is closed.
func (c *Cluster) release() (failed []*routedCall) {
	waiting := c.waiting
	c.waiting = nil
	for _, t := range waiting {
		n := c.master(t.slot)
		if n == nil {
			failed = append(failed, t)
			continue
		}
		t.board(n)
		t.send()
	}
	return failed
}
