package pubsub

import (
	"errors"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// channel is the state of one channel: see the package comment. asked, acked
// and unanswered speak of the present connection only.
type channel struct {
	name      string
	listeners []*listener

	asked      bool // the last command sent for it was SUBSCRIBE
	acked      bool // asked, and the server has answered every command for it
	unanswered int  // commands sent and not yet answered
	alone      bool // must not share a SUBSCRIBE: one that it was in has failed
	paused     bool // refused for now: not asked for until table.resume
	dirty      bool // stands in the table's dirty list
}

func (c *channel) wanted() bool { return len(c.listeners) > 0 }

func (c *channel) add(l *listener) {
	l.ch, l.place = c, len(c.listeners)
	c.listeners = append(c.listeners, l)
}

func (c *channel) remove(l *listener) {
	last := len(c.listeners) - 1
	moved := c.listeners[last]
	c.listeners[l.place], moved.place = moved, l.place
	c.listeners[last] = nil
	c.listeners = c.listeners[:last]
	l.ch = nil
}

func (c *channel) deliver(payload string) {
	for _, l := range c.listeners {
		l.message(payload)
	}
}

// forget drops all that was true of a connection that is gone.
func (c *channel) forget() {
	c.asked, c.acked, c.alone, c.paused, c.dirty, c.unanswered = false, false, false, false, false, 0
}

// failPending fails the listeners that still wait to be established. A sink may have
// listened elsewhere before: it is told that the refusal is not of the channel for good.
func (c *channel) failPending(err error) {
	forNow := err
	if !errors.Is(err, transport.ErrNotSent) {
		forNow = notSent(err)
	}
	for i := len(c.listeners) - 1; i >= 0; i-- {
		if l := c.listeners[i]; !l.established {
			c.remove(l)
			if l.sink != nil {
				l.fail(forNow)
			} else {
				l.fail(err)
			}
		}
	}
}

// batchSize is how many channels one SUBSCRIBE or UNSUBSCRIBE names at most.
const batchSize = 256

// kind is the kind of an op.
type kind uint8

const (
	ping kind = iota
	subscribe
	unsubscribe
	kinds // how many there are
)

// String returns the command's name; in front of it stands an S where channels are
// those of a shard.
func (k kind) String() string {
	return [kinds]string{"PING", "SUBSCRIBE", "UNSUBSCRIBE"}[k]
}

// pingKind says whether a PING is due, and which.
type pingKind uint8

const (
	noPing    pingKind = iota
	greeting           // the first command on a connection
	keepAlive          // the connection has been silent
)

// op is one command on its way: sent, or about to be, and not fully answered.
type op struct {
	kind     kind
	greeting bool          // a PING, the first one on its connection
	again    bool          // refused for now, and its channel was refused before
	args     []any         // the names of all its channels; never changes
	rest     []*channel    // the channels not yet acknowledged, in the order sent
	sent     time.Duration // since the connection was made
}

func (o *op) names() []any {
	if len(o.rest) == 0 {
		return nil
	}
	args := make([]any, len(o.rest))
	for i, c := range o.rest {
		args[i] = c.name
	}
	return args
}

// batches gathers channels into commands.
type batches struct {
	most int // channels that one command may name
	ops  []*op
	open [kinds]*op // has room left
}

func (b *batches) add(c *channel) {
	k := unsubscribe
	if c.asked {
		k = subscribe
	}
	o := b.open[k]
	if o == nil || len(o.rest) >= b.most || c.alone {
		o = &op{kind: k}
		b.ops = append(b.ops, o)
		if !c.alone {
			b.open[k] = o
		}
	}
	o.rest = append(o.rest, c)
}
