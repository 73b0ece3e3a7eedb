package cluster

import (
	"context"
	"fmt"
	"sync"

	"github.com/redlatch/redlatch/transport"
)

var errClosedNotSent = fmt.Errorf("%w: %w", transport.ErrNotSent, transport.ErrClosed)

// Cluster is a transport to a cluster. Make one with [New].
type Cluster struct {
	cfg    Config
	ctx    context.Context //nolint:containedctx // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup // refresher, resubscriber, and nodes that are being closed
	due    chan struct{}  // a refresh is

	resubscriber resubscriber

	mu        sync.Mutex // guards what follows; not held across I/O or while a done runs
	closed    bool
	running   bool                // refresher and resubscriber have been started
	table     [slots]*node        // nil: the master is not known
	replicas  map[string][]string // of each master, by address
	refreshed chan struct{}       // closed when the next refresh has ended
	err       error               // why the last refresh failed
	waiting   []*routedCall       // for a refresh
	subs      map[*subscription]struct{}
	nodes     map[string]*node // by address
	byTag     map[int64]*node
	tags      int64
	changed   chan struct{} // closed when a connection, or the owner of a slot, is replaced
	lost      chan struct{} // closed when a connection to a master is lost, or a master is none any more
	lacks     [kinds]bool   // the servers do not know this way to listen
}

var (
	_ transport.Transport   = (*Cluster)(nil)
	_ transport.Fencer      = (*Cluster)(nil)
	_ transport.Slotter     = (*Cluster)(nil)
	_ transport.Reconnecter = (*Cluster)(nil)
	_ transport.Counter     = (*Cluster)(nil)
	_ transport.Replicator  = (*Cluster)(nil)
	_ transport.Leader      = (*Cluster)(nil)
)

// New returns a transport that connects on first use. It panics when cfg lacks
// something that is required.
func New(cfg Config) *Cluster {
	c := &Cluster{
		cfg:       cfg.withDefaults(),
		due:       make(chan struct{}, 1),
		refreshed: make(chan struct{}),
		subs:      map[*subscription]struct{}{},
		nodes:     map[string]*node{},
		byTag:     map[int64]*node{},
		changed:   make(chan struct{}),
		lost:      make(chan struct{}),
	}
	c.resubscriber.wake = make(chan struct{}, 1)
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// Start is part of transport.Transport. The call goes to the master of its first key's
// slot, or to any master when it has no keys.
func (c *Cluster) Start(call *transport.Call, done transport.Done) {
	c.newRoutedCall(call, done).depart()
}

// Leads is part of transport.Leader.
func (c *Cluster) Leads(outermost transport.Transport) bool {
	return outermost == transport.Transport(c)
}

// Lead is part of transport.Leader. It waits for the reply of the first node that the call
// goes to: one that is sent on to another node is awaited elsewhere.
func (c *Cluster) Lead(ctx context.Context, call *transport.Call, done transport.Done, caller transport.Caller) {
	t := c.newRoutedCall(call, done)
	t.ctx, t.caller = ctx, caller
	if !t.depart() {
		caller.Started()
	}
}

// Interrupt is part of transport.Leader.
func (c *Cluster) Interrupt(call *transport.Call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		n.mux.Interrupt(call)
	}
}

// PublishCommand is part of transport.Transport: what Config said.
func (c *Cluster) PublishCommand() string { return c.cfg.Publish }

// Slot is part of transport.Slotter.
func (c *Cluster) Slot(key string) int { return transport.HashSlot(key) }

// Reconnected is part of transport.Reconnecter: the channel is closed when a node was
// connected to again, and when slots have another master.
func (c *Cluster) Reconnected() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// reconnected closes the channel of Reconnected, if n is a master: no caller waits
// for nodes that are only asked for the topology.
func (c *Cluster) reconnected(n *node) {
	c.mu.Lock()
	master := n.left.IsZero()
	if master {
		c.announceLocked()
	}
	c.mu.Unlock()
	if tell := c.cfg.Conn.OnReconnect("commands"); master && tell != nil {
		tell()
	}
}

func (c *Cluster) announceLocked() {
	close(c.changed)
	c.changed = make(chan struct{})
}

// Lost returns a channel that is closed when a connection to a master was lost, or a
// master has ceased to be one: its locks may be gone. Ask again for the one after.
func (c *Cluster) Lost() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lost
}

// disconnected closes the channel of Lost, if n is a master.
func (c *Cluster) disconnected(n *node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.left.IsZero() {
		c.doubtLocked()
	}
}

func (c *Cluster) doubtLocked() {
	close(c.lost)
	c.lost = make(chan struct{})
}

// Fence is part of transport.Fencer; see mux.Mux.Fence.
func (c *Cluster) Fence(ctx context.Context, call *transport.Call) error {
	c.mu.Lock()
	n := c.byTag[call.Conn()&^(1<<tagShift-1)]
	if call.Conn() == 0 && call.NumKeys > 0 {
		n = c.table[transport.HashSlot(call.Key(0))] // it knows why the connection is not known
	}
	c.mu.Unlock()
	if n == nil {
		return errNoFence
	}
	return n.mux.Fence(ctx, call)
}

// begin starts the goroutines with the first use, mu held.
func (c *Cluster) begin() {
	if c.running || c.closed {
		return
	}
	c.running = true
	c.wg.Go(c.runRefreshes)
	c.wg.Go(c.runResubscriber)
}

// refresh sees to it that there is a refresh soon. It does not wait.
func (c *Cluster) refresh() {
	select {
	case c.due <- struct{}{}:
	default:
	}
}

// Close is part of transport.Transport.
func (c *Cluster) Close() error {
	c.cancel()
	c.mu.Lock()
	for _, n := range c.nodes {
		c.wg.Go(n.close) // before mu is let go: another Close may wait at once
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
