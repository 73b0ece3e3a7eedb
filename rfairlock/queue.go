package rfairlock

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

var _ protocol.Queue = (*fair)(nil)

// keep is for how long a heartbeat keeps a place, in milliseconds: three heartbeats,
// so that a process may miss two.
var keep any = int64(15_000)

// Heartbeat is part of protocol.Queue.
func (f *fair) Heartbeat(c *transport.Call, window int, waiters []protocol.Waiter, others []reply.Other) {
	f.scripts.Heartbeat(c, f.engine.NowMillis(), luasrc.Beat{
		Keep: keep, FairWait: f.engine.FairWaitArg, Window: window, Waiters: len(waiters),
	})
	for _, w := range waiters {
		luasrc.AddWaiter(c, w.Owner, w.Wait)
	}
	for _, o := range others {
		luasrc.AddOther(c, o)
	}
	c.Urgent = true // before the acquires that wait to be sent: a place is at stake
}

// Evict is part of protocol.Queue.
func (f *fair) Evict(c *transport.Call, dead []reply.Place) {
	f.scripts.Evict(c, f.engine.NowMillis(), keep, dead)
}

// Nudge is part of protocol.Queue.
func (f *fair) Nudge(c *transport.Call, owner string) {
	f.scripts.Nudge(c, owner)
}

// WaiterChannel is part of protocol.Queue.
func (f *fair) WaiterChannel(owner string) string { return codec.OwnerChannel(f.name, owner) }
