package pubsub

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// table holds the channels and the commands for them. It doesn't do I/O. Subscriber.mu guards it.
type table struct {
	channels map[string]*channel
	most     int
	attached bool // if false, dirty and ops are empty
	pingDue  bool
	greet    bool       // the PING that is due is the connection's first
	dirty    []*channel // wanted and asked may differ
	ops      []*op      // unanswered commands, oldest first

	paused   []*channel
	resumeAt time.Duration // age of the connection; if 0, see resume
}

// join adds l to the channel called name. If the channel is acked, l is established; otherwise l gets a ready channel.
func (t *table) join(name string, l *listener) {
	c := t.channels[name]
	if c == nil {
		c = &channel{name: name}
		t.channels[name] = c
	}
	c.add(l)
	switch {
	case c.acked && l.sink != nil:
		l.establish()
		return
	case c.acked:
		l.established = true
		return
	}
	l.ready = make(chan struct{})
	t.mark(c)
}

func (t *table) leave(l *listener) {
	if c := l.ch; c != nil {
		c.remove(l)
		t.settle(c)
	}
}

// settle deletes a channel that has neither listeners nor state on the server, and marks one that
// needs a command.
func (t *table) settle(c *channel) {
	switch {
	case c.wanted() || c.asked:
		t.mark(c)
	case c.unanswered == 0 && !c.paused && t.channels[c.name] == c:
		delete(t.channels, c.name)
	}
}

func (t *table) mark(c *channel) {
	if t.attached && !c.dirty && !c.paused && c.wanted() != c.asked {
		c.dirty = true
		t.dirty = append(t.dirty, c)
	}
}

func (t *table) attach() {
	t.attached, t.pingDue, t.greet = true, true, true
	for _, c := range t.channels {
		t.mark(c)
	}
}

func (t *table) detach() {
	t.attached, t.pingDue, t.greet, t.dirty, t.ops, t.paused, t.resumeAt = false, false, false, nil, nil, nil, 0
	for _, c := range t.channels {
		c.forget()
		t.settle(c)
	}
}

func (t *table) collect(now time.Duration) []*op {
	t.resume(now)
	b := batches{most: t.most}
	if t.pingDue {
		b.ops = append(b.ops, &op{kind: ping, greeting: t.greet})
		t.pingDue, t.greet = false, false
	}
	for _, c := range t.dirty {
		c.dirty = false
		if !c.paused && c.wanted() != c.asked {
			c.asked, c.acked = c.wanted(), false
			c.unanswered++
			b.add(c)
		}
	}
	t.dirty = nil
	for _, o := range b.ops {
		o.sent = now
		o.args = o.names()
	}
	t.ops = append(t.ops, b.ops...)
	return b.ops
}

func (t *table) oldest() *op {
	if len(t.ops) == 0 {
		return nil
	}
	return t.ops[0]
}

func (t *table) popOp() {
	t.ops[0] = nil
	t.ops = t.ops[1:]
}

func (t *table) pong() {
	if o := t.oldest(); o != nil && o.kind == ping {
		t.popOp()
	}
}

func (t *table) acknowledge(k kind, name string) bool {
	o := t.oldest()
	if o == nil || o.kind != k || o.rest[0].name != name {
		t.unsolicited(k, name)
		return false
	}
	c := o.rest[0]
	o.rest = o.rest[1:]
	if len(o.rest) == 0 {
		t.popOp()
	}
	if c.unanswered--; c.unanswered > 0 {
		return true
	}
	if c.asked {
		c.acked, c.alone = true, false
		for _, l := range c.listeners {
			l.establish()
		}
	}
	t.settle(c)
	return true
}

// unsolicited subscribes to a channel again if the server has unsubscribed it, for example because its slot has moved.
// If a command for the channel is unanswered, unsolicited does nothing.
func (t *table) unsolicited(k kind, name string) {
	if c := t.channels[name]; c != nil && k == unsubscribe && c.acked {
		c.asked, c.acked = false, false
		t.settle(c)
	}
}

// refuse handles an error reply to the oldest command, and returns that command. A fatal error means that the
// server is not serving any client now, so the connection must be closed.
func (t *table) refuse(err *transport.ServerError) (o *op, fatal error) {
	o = t.oldest()
	switch {
	case unsubscribedAlready(err) && (o == nil || o.kind != unsubscribe):
		// The server's own unsubscription was mistaken for the answer to ours.
		return &op{kind: unsubscribe}, nil
	case o == nil:
		return nil, err
	}
	t.popOp()
	switch {
	case o.kind == ping:
		if o.greeting && !transport.IsCode(err, "NOPERM") {
			return o, err
		}
	case o.kind == subscribe && len(o.rest) == 1:
		switch {
		case !passing(err):
			t.refuseChannel(o.rest[0], err)
		case ofSlot(err) && t.hasOthers():
			t.pause(o, err)
		default:
			return o, err
		}
	default:
		t.refuseBatch(o)
	}
	return o, nil
}

// unsubscribedAlready reports whether err means that the connection has no subscriptions on the server. That happens
// in Valkey after slots have moved.
func unsubscribedAlready(err *transport.ServerError) bool { return transport.IsCode(err, "NOSUB") }

func (t *table) refuseChannel(c *channel, err error) {
	if c.unanswered--; c.unanswered > 0 {
		return
	}
	c.asked = false
	t.failChannel(c, err)
}

// refuseBatch subscribes to each channel of a refused SUBSCRIBE separately. A refused UNSUBSCRIBE is not repeated,
// because messages on its channels are ignored.
func (t *table) refuseBatch(o *op) {
	for _, c := range o.rest {
		if c.unanswered--; c.unanswered > 0 {
			continue
		}
		if o.kind == subscribe {
			c.asked, c.alone = false, true
		}
		t.settle(c)
	}
}

func (t *table) failChannel(c *channel, err error) {
	listeners := c.listeners
	c.listeners = nil
	t.settle(c)
	for _, l := range listeners {
		l.fail(err)
	}
}

func (t *table) failPending(err error) {
	for _, c := range t.channels {
		c.failPending(err)
		t.settle(c)
	}
}

func (t *table) failAll(err error) {
	for _, c := range t.channels {
		t.failChannel(c, err)
	}
}

func (t *table) deliver(name, payload []byte) {
	if c := t.channels[string(name)]; c != nil {
		c.deliver(string(payload))
	}
}

func (t *table) count() (listeners, pending int) {
	for _, c := range t.channels {
		listeners += len(c.listeners)
		for _, l := range c.listeners {
			if !l.established {
				pending++
			}
		}
	}
	return listeners, pending
}

const pauseTime = time.Second

func passing(err *transport.ServerError) bool {
	switch err.Code() {
	case "BUSY", "LOADING", "MASTERDOWN":
		return true
	}
	return ofSlot(err)
}

func ofSlot(err *transport.ServerError) bool {
	return transport.IsCode(err, "CLUSTERDOWN") || transport.IsCode(err, "TRYAGAIN")
}

// hasOthers reports whether the server serves, or may serve, another channel. The refused command must have been
// removed.
func (t *table) hasOthers() bool {
	if slices.ContainsFunc(t.ops, func(o *op) bool { return o.kind == subscribe }) {
		return true
	}
	for _, c := range t.channels {
		if c.acked {
			return true
		}
	}
	return false
}

// pause pauses the channel of a refused SUBSCRIBE, unless a later command is unanswered. Established listeners keep
// waiting.
func (t *table) pause(o *op, err error) {
	c := o.rest[0]
	o.again, c.alone = c.alone, true
	if c.unanswered--; c.unanswered > 0 {
		return
	}
	c.asked, c.paused = false, true
	t.paused = append(t.paused, c)
	c.failPending(err)
}

// resume unpauses the paused channels once their pause is over. The first call starts the pause. Paused
// channels stay in the table, so that new listeners also wait.
func (t *table) resume(now time.Duration) {
	switch {
	case len(t.paused) == 0:
	case t.resumeAt == 0:
		t.resumeAt = now + pauseTime
	case now >= t.resumeAt:
		paused := t.paused
		t.paused, t.resumeAt = nil, 0
		for _, c := range paused {
			c.paused = false
			t.settle(c)
		}
	}
}

func (t *table) until(now, wait time.Duration) time.Duration {
	if t.resumeAt == 0 {
		return wait
	}
	return min(wait, t.resumeAt-now)
}
