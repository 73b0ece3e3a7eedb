package pubsub

import (
	"errors"

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
