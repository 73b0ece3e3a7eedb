package pubsub

import (
	"errors"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// A channel is the state of one channel on the current connection. It is "wanted" if it has listeners, and "asked" if
// the last command sent for it was SUBSCRIBE. The writer sends commands until the two agree:
//
//	          first listener          writer: SUBSCRIBE          its ack
//	absent ───────────────▶ wanted ───────────────────▶ asked ──────────▶ acked
//	  ▲                       ▲ ▲                         │                 │
//	  │        a new listener │ └── connection lost, or unsubscribed by the ┤ last listener
//	  │                       │     server, or refused temporarily (1 s)    │ leaves
//	  └──────────────────── leaving ◀───────────────────────────────────────┘
//	      ack of UNSUBSCRIBE, or connection lost
//
// Acknowledgements arrive in the order of the commands. A channel is acked only after the answer to its last command,
// so a subscription that is about to be canceled never counts as live.
type channel struct {
	name      string
	listeners []*listener

	asked      bool
	acked      bool // asked, and all commands have been answered
	unanswered int
	alone      bool // must not share a SUBSCRIBE, since a shared one failed
	paused     bool // refused temporarily, until table.resume
	dirty      bool
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

func (c *channel) forget() {
	c.asked, c.acked, c.alone, c.paused, c.dirty, c.unanswered = false, false, false, false, false, 0
}

// failPending fails the listeners that are not established. Sinks receive an error that wraps ErrNotSent, because the
// refusal is only temporary.
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

const batchSize = 256

type kind uint8

const (
	ping kind = iota
	subscribe
	unsubscribe
	kinds
)

func (k kind) String() string {
	return [kinds]string{"PING", "SUBSCRIBE", "UNSUBSCRIBE"}[k]
}

// An op is a command that has not been answered completely.
type op struct {
	kind     kind
	greeting bool
	again    bool // refused temporarily, and not for the first time
	args     []any
	rest     []*channel    // not acknowledged yet, in order
	sent     time.Duration // the connection's age when it was sent
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

type batches struct {
	most int
	ops  []*op
	open [kinds]*op // ops that are not full
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
