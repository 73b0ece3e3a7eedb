package pubsub

// channel is the state of one channel: see the package comment. asked, acked
// and unanswered speak of the present connection only.
type channel struct {
	name      string
	listeners []*listener

	asked      bool // the last command sent for it was SUBSCRIBE
	acked      bool // asked, and the server has answered every command for it
	unanswered int  // commands sent and not yet answered
	alone      bool // must not share a SUBSCRIBE: one that it was in has failed
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
	c.asked, c.acked, c.alone, c.dirty, c.unanswered = false, false, false, false, 0
}
