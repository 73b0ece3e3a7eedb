package rfairlock

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

var _ protocol.Queue = (*fair)(nil)

// keep is for how long a heartbeat keeps a place, in milliseconds: three heartbeats,
// so that a process may miss two.
var keep any = int64(15_000)

// Heartbeat is part of protocol.Queue.
func (f *fair) Heartbeat(c *transport.Call, window int, waiters []protocol.Waiter, others []codec.Other) {
	f.three(c, luasrc.FairHeartbeat, keep, f.engine.FairWaitArg, int64(window), int64(len(waiters)))
	for _, w := range waiters {
		c.Args = append(c.Args, w.Owner, w.Wait)
	}
	for _, o := range others {
		c.Args = append(c.Args, o.Owner, o.Wait, lives[o.Living])
	}
	c.Urgent = true // before the acquires that wait to be sent: a place is at stake
}

// lives is how a script is told.
var lives = map[bool]any{true: "1", false: "0"}

// Evict is part of protocol.Queue.
func (f *fair) Evict(c *transport.Call, dead []codec.Place) {
	f.four(c, luasrc.FairEvict, keep, f.publish, f.message)
	for _, place := range dead {
		c.Args = append(c.Args, place.Owner, place.Deadline)
	}
}

// Nudge is part of protocol.Queue.
func (f *fair) Nudge(c *transport.Call, owner string) {
	c.Script, c.NumKeys = luasrc.FairNudge, 3
	c.Args = append(c.Args, f.key, f.queue, f.channel, owner, f.publish, f.message)
}

// WaiterChannel is part of protocol.Queue.
func (f *fair) WaiterChannel(owner string) string { return codec.OwnerChannel(f.name, owner) }
