// Package cluster implements a transport to a Redis or Valkey Cluster. A call that a node redirects
// has not run, so it is sent to the other node, at most [maxHops] times. Other errors are returned
// to the caller. If a connection breaks during a call, its outcome is unknown, and it is not sent
// again. Cluster.mu guards the table, the nodes and the set of subscriptions. Each subscription has
// its own mutex, which may be locked while Cluster.mu is held. Neither is held across I/O or while
// a done callback runs.
package cluster

import (
	"context"
	"fmt"
	"sync"

	"github.com/redlatch/redlatch/internal/builtin"
	"github.com/redlatch/redlatch/transport"
)

var errClosedNotSent = fmt.Errorf("%w: %w", transport.ErrNotSent, transport.ErrClosed)

// Cluster is a transport to a cluster.
type Cluster struct {
	cfg    Config
	ctx    context.Context //nolint:containedctx // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // refresher, settler, and nodes being closed
	due    chan struct{}  // cap 1; receives a value when a refresh is due

	wake chan struct{} // cap 1; receives a value when subscriptions are unsettled

	mu        sync.Mutex // not held across I/O or while a done callback runs
	closed    bool
	running   bool
	table     [slots]*node        // nil if the master is unknown
	replicas  map[string][]string // by the master's address
	refreshed chan struct{}
	err       error
	waiting   []*routedCall
	subs      map[*subscription]struct{}
	unsettled []*subscription  // may have to move to another node
	nodes     map[string]*node // by address
	byTag     map[int64]*node
	tags      int64
	changed   chan struct{}
	lost      chan struct{}
	lacks     [kinds]bool // the servers do not know this kind of subscription
}

var (
	_ transport.Transport   = (*Cluster)(nil)
	_ transport.Fencer      = (*Cluster)(nil)
	_ transport.Slotter     = (*Cluster)(nil)
	_ transport.Reconnecter = (*Cluster)(nil)
	_ transport.Counter     = (*Cluster)(nil)
	_ transport.Replicator  = (*Cluster)(nil)
	_ builtin.Leader        = (*Cluster)(nil)
)

// New returns a transport that connects when it is first used. It panics if a field of cfg is
// missing.
func New(cfg Config) *Cluster {
	c := &Cluster{
		cfg:       cfg.withDefaults(),
		due:       make(chan struct{}, 1),
		wake:      make(chan struct{}, 1),
		refreshed: make(chan struct{}),
		subs:      map[*subscription]struct{}{},
		nodes:     map[string]*node{},
		byTag:     map[int64]*node{},
		changed:   make(chan struct{}),
		lost:      make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Start implements transport.Transport. The call goes to the master of its first key's slot, or to
// any master.
func (c *Cluster) Start(call *transport.Call, done transport.Done) {
	c.newRoutedCall(call, done).depart()
}

// Leads implements builtin.Leader.
func (c *Cluster) Leads(outermost transport.Transport) bool {
	return outermost == transport.Transport(c)
}

// Lead implements builtin.Leader. It waits only for the first node to which it sends the call.
func (c *Cluster) Lead(ctx context.Context, call *transport.Call, done transport.Done, caller builtin.Caller) {
	t := c.newRoutedCall(call, done)
	t.ctx, t.caller = ctx, caller
	if !t.depart() {
		caller.Started()
	}
}

// Interrupt implements builtin.Leader.
func (c *Cluster) Interrupt(call *transport.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		n.mux.Interrupt(call)
	}
}

// PublishCommand implements transport.Transport.
func (c *Cluster) PublishCommand() string { return c.cfg.Publish }

// Slot implements transport.Slotter.
func (c *Cluster) Slot(key string) int { return transport.HashSlot(key) }

// Reconnected implements transport.Reconnecter. The channel is closed when a connection to a
// master, or the master of a slot, has been replaced.
func (c *Cluster) Reconnected() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *Cluster) reconnected(n *node) {
	c.mu.Lock()
	master := n.left.IsZero()
	if master {
		broadcast(&c.changed)
	}
	c.mu.Unlock()
	if tell := c.cfg.Conn.OnReconnect("commands"); master && tell != nil {
		tell()
	}
}

func broadcast(channel *chan struct{}) {
	close(*channel)
	*channel = make(chan struct{})
}

// Lost returns a channel that is closed when a connection to a master is lost or a master is
// demoted.
func (c *Cluster) Lost() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

func (c *Cluster) disconnected(n *node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.left.IsZero() {
		broadcast(&c.lost)
	}
}

// Fence implements transport.Fencer; see mux.Mux.Fence.
func (c *Cluster) Fence(ctx context.Context, call *transport.Call) error {
	c.mu.Lock()
	n := c.byTag[call.Conn()&^(1<<tagShift-1)]
	if call.Conn() == 0 && call.NumKeys > 0 {
		n = c.table[transport.HashSlot(call.Key(0))] // this node knows why there is no ID
	}
	c.mu.Unlock()
	if n == nil {
		return errNoFence
	}
	return n.mux.Fence(ctx, call)
}

// begin is called with c.mu held.
func (c *Cluster) begin() {
	if c.running || c.closed {
		return
	}
	c.running = true
	c.wg.Go(c.runRefreshes)
	c.wg.Go(c.runSettler)
}

func (c *Cluster) refresh() {
	select {
	case c.due <- struct{}{}:
	default:
	}
}

// Close implements transport.Transport.
func (c *Cluster) Close() error {
	c.cancel()
	c.mu.Lock()
	for _, n := range c.nodes {
		c.wg.Go(n.close) // under mu, so that a concurrent Close waits for it
	}
	waiting, subs := c.waiting, c.subs
	c.closed, c.waiting, c.subs, c.nodes = true, nil, nil, nil
	c.mu.Unlock()
	for _, t := range waiting {
		t.done(nil, errClosedNotSent)
	}
	for s := range subs {
		s.fail(transport.ErrClosed)
	}
	c.wg.Wait()
	return nil
}
