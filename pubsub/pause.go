package pubsub

import (
	"slices"
	"time"

	"github.com/redlatch/redlatch/transport"
)

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
