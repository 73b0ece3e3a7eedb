package pubsub

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// table holds the channels and what is on its way for them. It does no I/O and
// has no lock: the Subscriber's mutex guards it.
type table struct {
	channels map[string]*channel
	most     int        // channels that one command may name
	attached bool       // there is a connection; without one, nothing is dirty or on its way
	pingDue  pingKind   // the writer is to send a PING
	dirty    []*channel // wanted and asked may differ
	ops      []*op      // unanswered commands, oldest first

	paused   []*channel    // refused for now
	resumeAt time.Duration // when they are asked for again, since the connection was made; 0: see resume
}

// join adds l to the channel called name. The listener is established at once
// if the channel is acked, and has to wait for its ready channel if not.
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

// leave removes l, if it is still there.
func (t *table) leave(l *listener) {
	if c := l.ch; c != nil {
		c.remove(l)
		t.settle(c)
	}
}

// settle forgets a channel that has no listener and the server does not know,
// and otherwise has the writer look at it.
func (t *table) settle(c *channel) {
	switch {
	case c.wanted() || c.asked:
		t.mark(c)
	case c.unanswered == 0 && !c.paused && t.channels[c.name] == c:
		delete(t.channels, c.name)
	}
}

// mark has the writer compare wanted and asked.
func (t *table) mark(c *channel) {
	if t.attached && !c.dirty && !c.paused && c.wanted() != c.asked {
		c.dirty = true
		t.dirty = append(t.dirty, c)
	}
}

// attach begins a connection: it is to be greeted, and everything wanted asked
// for.
func (t *table) attach() {
	t.attached, t.pingDue = true, greeting
	for _, c := range t.channels {
		t.mark(c)
	}
}

// detach ends a connection: what the server knew of us is void.
func (t *table) detach() {
	t.attached, t.pingDue, t.dirty, t.ops, t.paused, t.resumeAt = false, noPing, nil, nil, nil, 0
	for _, c := range t.channels {
		c.forget()
		t.settle(c)
	}
}

// collect turns what is due into commands, which count as sent at now, a time
// since the connection was made.
func (t *table) collect(now time.Duration) []*op {
	t.resume(now)
	b := batches{most: t.most}
	if t.pingDue != noPing {
		b.ops = append(b.ops, &op{kind: ping, greeting: t.pingDue == greeting})
		t.pingDue = noPing
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

// oldest returns the oldest unanswered command, or nil.
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

// pong answers a PING.
func (t *table) pong() {
	if o := t.oldest(); o != nil && o.kind == ping {
		t.popOp()
	}
}

// acknowledge takes the server's (un)subscribe message for one channel. It
// reports whether that answers a command.
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

// unsolicited undoes an unsubscription of the server's own. While a command for
// the channel is under way its answer decides.
func (t *table) unsolicited(k kind, name string) {
	if c := t.channels[name]; c != nil && k == unsubscribe && c.acked {
		c.asked, c.acked = false, false
		t.settle(c)
	}
}

// refuse takes an error, which answers the oldest command, and returns that
// command. A non-nil fatal error means that the connection must be given up,
// because the server as a whole does not serve us now.
func (t *table) refuse(err *transport.ServerError) (o *op, fatal error) {
	o = t.oldest()
	switch {
	case unsubscribedAlready(err) && (o == nil || o.kind != unsubscribe):
		// The server's own unsubscription was taken for the answer to ours.
		return &op{kind: unsubscribe}, nil
	case o == nil:
		return nil, err
	}
	t.popOp()
	switch {
	case o.kind == ping:
		if o.greeting && !err.HasCode("NOPERM") {
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

// unsubscribedAlready reports whether err answers an unsubscription on a connection
// that the server takes for one without subscriptions, as Valkey does after slots have
// moved.
func unsubscribedAlready(err *transport.ServerError) bool { return err.HasCode("NOSUB") }

// refuseChannel fails all listeners of a channel whose SUBSCRIBE the server
// refuses, unless a later command for it is under way and will tell.
func (t *table) refuseChannel(c *channel, err error) {
	if c.unanswered--; c.unanswered > 0 {
		return
	}
	c.asked = false
	t.failChannel(c, err)
}

// refuseBatch has each channel of a refused SUBSCRIBE asked for by itself. A
// refused UNSUBSCRIBE is not repeated: messages without a listener are
// ignored.
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

// failChannel fails all listeners of a channel.
func (t *table) failChannel(c *channel, err error) {
	listeners := c.listeners
	c.listeners = nil
	t.settle(c)
	for _, l := range listeners {
		l.fail(err)
	}
}

// failPending fails the listeners that still wait to be established.
func (t *table) failPending(err error) {
	for _, c := range t.channels {
		c.failPending(err)
		t.settle(c)
	}
}

// failAll fails every listener.
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

// count returns how many listeners there are, and how many of them wait to be
// established.
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

// pauseTime is after how long a channel that was refused for now is asked for again.
const pauseTime = time.Second

// passing reports whether err says that the server can not serve us for a while, rather
// than that it will not.
func passing(err *transport.ServerError) bool {
	switch err.Code() {
	case "BUSY", "LOADING", "MASTERDOWN":
		return true
	}
	return ofSlot(err)
}

// ofSlot reports whether err may be of the channel's slot alone: no node serves it, or it
// is on its way to another.
func ofSlot(err *transport.ServerError) bool {
	return err.HasCode("CLUSTERDOWN") || err.HasCode("TRYAGAIN")
}

// hasOthers reports whether the server serves a channel, or may do so once it has answered.
// It must not be asked before the refused command is taken out.
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

// pause leaves the channel of a refused SUBSCRIBE alone for a while, unless a later command
// for it is under way and will tell. Established listeners wait.
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

// resume has paused channels asked for again when it is time. The first look at them begins
// the pause. A channel stays in the table until its pause is over, so that a listener that
// comes again at once waits for it, too.
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

// until returns how long it is to resume, at most wait.
func (t *table) until(now, wait time.Duration) time.Duration {
	if t.resumeAt == 0 {
		return wait
	}
	return min(wait, t.resumeAt-now)
}
