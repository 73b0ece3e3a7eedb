package rfairlock

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

// fair is the protocol of the fair lock.
type fair struct {
	name    string
	engine  *engine.Engine // for the time of day
	scripts luasrc.Fair
}

var _ protocol.Protocol = (*fair)(nil)

func newFair(e *engine.Engine, name string) *fair {
	return &fair{name: name, engine: e, scripts: luasrc.Fair{
		Key: name, Queue: codec.QueueKey(name), Timeouts: codec.TimeoutKey(name), Channel: codec.LockChannel(name),
		Publish: e.Publish(),
	}}
}

// Kind is part of protocol.Protocol.
func (f *fair) Kind() string { return "fair" }

// Key is part of protocol.Protocol.
func (f *fair) Key() string { return f.name }

// Queues is part of protocol.Protocol.
func (f *fair) Queues() bool { return true }

// Try is part of protocol.Protocol.
func (f *fair) Try(c *transport.Call, a *protocol.Acquisition) {
	f.scripts.Try(c, f.engine.NowMillis(), a.Owner, a.Wait, a.Lease)
}

// Acquire is part of protocol.Protocol.
func (f *fair) Acquire(c *transport.Call, a *protocol.Acquisition) {
	f.scripts.Acquire(c, f.engine.NowMillis(), a.Owner, a.Wait, a.Lease)
}

// Pass is part of protocol.Protocol: the queue on the server says who is next.
func (f *fair) Pass(*transport.Call, *protocol.Acquisition, any) {}

// GiveUp is part of protocol.Protocol.
func (f *fair) GiveUp(c *transport.Call, a *protocol.Acquisition) {
	f.scripts.GiveUp(c, f.engine.NowMillis(), a.Owner, a.Wait)
}

// Reenter is part of protocol.Protocol.
func (f *fair) Reenter(c *transport.Call, a *protocol.Acquisition, target int64) {
	f.scripts.Reenter(c, f.engine.NowMillis(), a.Owner, a.Lease, target)
}

// Release is part of protocol.Protocol.
func (f *fair) Release(c *transport.Call, a *protocol.Acquisition, target int64) {
	f.scripts.Release(c, f.engine.NowMillis(), a.Owner, a.Lease, target)
	c.Urgent = true
}

// ReleaseShared is part of protocol.Protocol.
func (f *fair) ReleaseShared(c *transport.Call, a *protocol.Acquisition, latch string) {
	f.scripts.ReleaseShared(c, latch, f.engine.NowMillis(), a.Owner, a.Lease)
	c.Urgent = true
}

// ForceRelease is part of protocol.Protocol.
func (f *fair) ForceRelease(c *transport.Call) {
	f.scripts.ForceRelease(c, f.engine.NowMillis())
	c.Urgent = true
}

// Inspect is part of protocol.Protocol.
func (f *fair) Inspect(c *transport.Call, first, last int64) {
	f.scripts.Inspect(c, inspected, f.engine.CountCommand(), first, last)
}

// inspected is how many waiters' listeners an inspection counts.
const inspected = 64

// Channel is part of protocol.Protocol. Each waiter has its own.
func (f *fair) Channel(a *protocol.Acquisition) string {
	owner, _ := a.Owner.(string) // always one
	return f.WaiterChannel(owner)
}
