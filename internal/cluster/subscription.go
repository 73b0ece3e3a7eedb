package cluster

import (
	"context"
	"errors"
	"sync"

	"github.com/redlatch/redlatch/internal/pubsub"
	"github.com/redlatch/redlatch/transport"
)

// A subscription is one listener on one channel. It uses both SUBSCRIBE and SSUBSCRIBE on the
// master of its slot, because peers may publish either way. It is established when both are
// acknowledged, or when the kind used to publish is acknowledged and the other one is refused.
// Before that, it fails if the node cannot be reached. After that, it moves with its slot, which
// causes a gap.
type subscription struct {
	c       *Cluster
	channel string
	slot    int
	events  chan transport.Event
	ready   chan struct{} // closed when established or failed

	at *node // where it subscribes; guarded by Cluster.mu, and changed only with moving held

	// moving is held while channel subscriptions are attached and detached. It must not be locked
	// while another mutex is held, or in a callback of a subscriber.
	moving sync.Mutex

	mu          sync.Mutex // may be locked with Cluster.mu held
	channelSubs [kinds]*channelSub
	established bool
	gap         bool // to be reported when all channel subscriptions are acknowledged
	broken      bool // a channel subscription has failed and must be replaced
	hops        int
	over        bool
	err         error
}

// Subscribe implements transport.Transport.
func (c *Cluster) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s := &subscription{
		c: c, channel: channel, slot: transport.HashSlot(channel),
		events: make(chan transport.Event, 1), ready: make(chan struct{}),
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil, transport.ErrClosed
	}
	c.begin()
	c.subs[s] = struct{}{}
	known := c.table[s.slot] != nil
	c.mu.Unlock()
	if known {
		s.settle()
	} else {
		c.refresh()
	}
	select {
	case <-s.ready:
	case <-ctx.Done():
		s.Close()
		return nil, ctx.Err()
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *subscription) Events() <-chan transport.Event { return s.events }

func (s *subscription) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *subscription) Close() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	s.settle()
}

// settle moves s to the master of its slot, or detaches it if it is over. If there is no master, s
// stays where it is, because its node will report a new one.
func (s *subscription) settle() {
	s.moving.Lock()
	defer s.moving.Unlock()
	c := s.c
	c.mu.Lock()
	n := c.table[s.slot]
	s.mu.Lock()
	if n == nil {
		n = s.at
	}
	over, stays := s.over, n == s.at && !s.broken
	s.mu.Unlock()
	if !over && (stays || c.closed) {
		c.mu.Unlock()
		return
	}
	if over {
		n = nil
		delete(c.subs, s)
	}
	old, channelSubs := s.replace(n)
	c.mu.Unlock()
	for k, l := range channelSubs {
		if l != nil {
			l.stop = l.on.Listen(s.channel, channelSubs[k])
		}
	}
	for _, l := range old {
		if l != nil {
			l.stop()
		}
	}
}

// replace gives s new channel subscriptions on n, or none if n is nil, and returns the old and the
// new ones. It is called with c.mu held.
func (s *subscription) replace(n *node) (old, channelSubs [kinds]*channelSub) {
	c := s.c
	if s.at != nil {
		s.at.channelSubs--
	}
	if s.at = n; n != nil {
		n.channelSubs++
		for k := range kinds {
			if !c.lacks[k] || k == published(c.cfg.Publish) {
				channelSubs[k] = &channelSub{s: s, kind: k, addr: n.addr, on: n.subs[k]}
			}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old = s.channelSubs
	s.channelSubs, s.broken, s.gap = channelSubs, false, s.established
	return old, channelSubs
}

// complete establishes s, or reports its gap, once it has been acknowledged. It is called with s.mu
// held.
func (s *subscription) complete() {
	for _, l := range s.channelSubs {
		if l != nil && !l.acked && !l.refused {
			return
		}
	}
	s.hops = 0
	if !s.established {
		s.established = true
		close(s.ready)
		return
	}
	if s.gap {
		s.gap = false
		s.offer(transport.Event{Gap: true})
	}
}

// offer sends the event, or adds it to a pending event. It cannot block because s.mu is held.
func (s *subscription) offer(e transport.Event) {
	select {
	case first := <-s.events:
		first.Coalesced++
		e = first
	default:
	}
	s.events <- e
}

func (s *subscription) unsubscribed(k kind) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.channelSubs[k]; l != nil && l.acked {
		l.acked, s.gap = false, s.established
	}
}

func (s *subscription) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failLocked(err)
}

func (s *subscription) failPending(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.established {
		s.failLocked(err)
	}
	return s.over
}

func (s *subscription) failLocked(err error) {
	if s.over {
		return
	}
	s.over, s.err = true, err
	if !s.established {
		close(s.ready)
	}
	close(s.events)
}

type channelSub struct {
	s    *subscription
	kind kind
	addr string
	on   *pubsub.Subscriber
	stop func() // guarded by subscription.moving

	acked, refused bool // guarded by subscription.mu
}

var _ pubsub.Sink = (*channelSub)(nil)

// current is called with s.mu held.
func (l *channelSub) current() bool { return !l.s.over && l.s.channelSubs[l.kind] == l }

func (l *channelSub) Acked(again bool) {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !l.current() {
		return
	}
	l.acked = true
	s.gap = s.gap || again
	s.complete()
}

func (l *channelSub) Message(payload string) {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.current() {
		s.offer(transport.Event{Payload: payload})
	}
}

func (l *channelSub) Failed(err error) {
	s := l.s
	c := s.c
	r, moved := redirected(err, l.addr)
	var refusal *transport.ServerError
	isRefusal := errors.As(err, &refusal) && !errors.Is(err, transport.ErrNotSent)
	s.mu.Lock()
	if !l.current() {
		s.mu.Unlock()
		return
	}
	if moved {
		s.hops++
	}
	lost := moved && (s.hops > maxHops || r.addr == "")
	switch {
	case moved, errors.Is(err, transport.ErrNotSent) && s.established:
		s.broken = true
	case isRefusal && l.kind != published(c.cfg.Publish):
		l.refused = true
		s.complete()
	default:
		s.failLocked(err)
	}
	s.mu.Unlock()
	if lost {
		c.refresh() // after that, it is attached again
		return
	}
	c.channelSubFailed(l, err, r, moved)
}

// channelSubFailed is called with the subscriber's lock held.
func (c *Cluster) channelSubFailed(l *channelSub, err error, r redirection, moved bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	switch {
	case moved && !r.asking:
		c.settle(r.slot, c.node(r.addr))
	case transport.IsCode(err, "ERR") && !errors.Is(err, transport.ErrNotSent) && l.kind != published(c.cfg.Publish) && !c.lacks[l.kind]:
		c.lacks[l.kind] = true
		c.cfg.Conn.Logger.Info("redlatch: the cluster's servers support only one kind of subscription", "error", err)
	}
	c.unsettle(l.s)
	if outdated(err) || moved {
		c.refresh()
	}
}

// unsettle lets the settler settle s. It is called with c.mu held.
func (c *Cluster) unsettle(s *subscription) {
	c.unsettled = append(c.unsettled, s)
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

func (c *Cluster) runSettler() {
	for {
		select {
		case <-c.wake:
		case <-c.ctx.Done():
			return
		}
		c.mu.Lock()
		unsettled := c.unsettled
		c.unsettled = nil
		c.mu.Unlock()
		for _, s := range unsettled {
			s.settle()
		}
	}
}

// evictLocked ends pending subscriptions whose slot has no master. It is called with c.mu held.
func (c *Cluster) evictLocked(err error) {
	for s := range c.subs {
		if s.at == nil && c.table[s.slot] == nil && s.failPending(unserved(err)) {
			delete(c.subs, s)
		}
	}
}

func (c *Cluster) unsubscribed(n *node, k kind) {
	c.mu.Lock()
	for s := range c.subs {
		if s.at == n {
			s.unsubscribed(k)
		}
	}
	c.mu.Unlock()
	c.refresh()
}
