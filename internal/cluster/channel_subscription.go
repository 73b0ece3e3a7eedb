package cluster

import (
	"errors"

	"github.com/redlatch/redlatch/pubsub"
	"github.com/redlatch/redlatch/transport"
)

// channelSub is one of the ways in which a subscription listens, on one node. Its
// methods are called by the subscriber.
type channelSub struct {
	s    *subscription
	kind kind
	addr string // the node's
	on   *pubsub.Subscriber
	stop func() // guarded by subscription.moving

	acked, refused bool // guarded by subscription.mu
}

var _ pubsub.Sink = (*channelSub)(nil)

// current reports whether l is a channel subscription that still counts, the subscription's mu held.
func (l *channelSub) current() bool { return !l.s.over && l.s.channelSubs[l.kind] == l }

// Acked is part of pubsub.Sink.
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

// Message is part of pubsub.Sink.
func (l *channelSub) Message(payload string) {
	s := l.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.current() {
		s.offer(transport.Event{Payload: payload})
	}
}

// Failed is part of pubsub.Sink.
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
		c.refresh() // after which it is attached again
		return
	}
	c.channelSubFailed(l, err, r, moved)
}

// channelSubFailed does what a channel subscription that has failed must leave to
// others. The subscriber's lock is held, and no other.
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
		c.cfg.Conn.Logger.Info("redlatch: the cluster's servers know one way to listen only", "error", err)
	}
	c.resubscriber.add(l.s)
	if outdated(err) || moved {
		c.refresh()
	}
}
