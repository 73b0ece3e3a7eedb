package rfairlock

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/core"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

// fair is the protocol of the fair lock. Arguments that never change are boxed
// once.
type fair struct {
	name   string
	engine *core.Engine // for the time of day

	key, queue, timeouts, channel, publish, message any
}

var _ protocol.Protocol = (*fair)(nil)

func newFair(e *core.Engine, name string) *fair {
	return &fair{
		name: name, engine: e,
		key: name, queue: codec.QueueKey(name), timeouts: codec.TimeoutKey(name), channel: codec.LockChannel(name),
		publish: e.Publish(), message: codec.MessageUnlock,
	}
}

// Kind is part of protocol.Protocol.
func (f *fair) Kind() string { return "fair" }

// Key is part of protocol.Protocol.
func (f *fair) Key() string { return f.name }

// Queues is part of protocol.Protocol.
func (f *fair) Queues() bool { return true }

// three fills in the keys that every script has, and the time.
func (f *fair) three(c *transport.Call, script *transport.Script, rest ...any) {
	c.Script, c.NumKeys = script, 3
	c.Args = append(c.Args, f.key, f.queue, f.timeouts, f.engine.NowMillis())
	c.Args = append(c.Args, rest...)
}

// four is three with the channel.
func (f *fair) four(c *transport.Call, script *transport.Script, rest ...any) {
	c.Script, c.NumKeys = script, 4
	c.Args = append(c.Args, f.key, f.queue, f.timeouts, f.channel, f.engine.NowMillis())
	c.Args = append(c.Args, rest...)
}

// Try is part of protocol.Protocol.
func (f *fair) Try(c *transport.Call, a *protocol.Acquisition) {
	f.three(c, luasrc.FairTry, a.Owner, a.Wait, a.Lease, protocol.Tell)
}

// Acquire is part of protocol.Protocol.
func (f *fair) Acquire(c *transport.Call, a *protocol.Acquisition) {
	f.three(c, luasrc.FairAcquire, a.Owner, a.Wait, a.Lease, protocol.Tell)
}

// Pass is part of protocol.Protocol: the queue on the server says who is next.
func (f *fair) Pass(*transport.Call, *protocol.Acquisition, any) {}

// GiveUp is part of protocol.Protocol.
func (f *fair) GiveUp(c *transport.Call, a *protocol.Acquisition) {
	if c.Script == luasrc.FairGiveUp {
		c.Args = append(c.Args, a.Owner, a.Wait)
		return
	}
	f.four(c, luasrc.FairGiveUp, a.Owner, a.Wait, f.publish, f.message)
}

// Reenter is part of protocol.Protocol.
func (f *fair) Reenter(c *transport.Call, a *protocol.Acquisition, target int64) {
	f.three(c, luasrc.FairReenter, a.Owner, a.Lease, target)
}

// Release is part of protocol.Protocol.
func (f *fair) Release(c *transport.Call, a *protocol.Acquisition, target int64) {
	f.four(c, luasrc.FairRelease, a.Owner, a.Lease, target, f.publish, f.message)
	c.Urgent = true
}

// ReleaseShared is part of protocol.Protocol.
func (f *fair) ReleaseShared(c *transport.Call, a *protocol.Acquisition, latch string) {
	c.Script, c.NumKeys, c.Urgent = luasrc.FairReleaseShared, 5, true
	c.Args = append(c.Args, f.key, f.queue, f.timeouts, f.channel, latch, f.engine.NowMillis(),
		a.Owner, a.Lease, f.publish, f.message, protocol.LatchMillis)
}

// ForceRelease is part of protocol.Protocol.
func (f *fair) ForceRelease(c *transport.Call) {
	f.four(c, luasrc.FairForceRelease, f.publish, f.message)
	c.Urgent = true
}

// Inspect is part of protocol.Protocol.
func (f *fair) Inspect(c *transport.Call, first, last int64) {
	c.Script, c.NumKeys = luasrc.FairInspect, 4
	c.Args = append(c.Args, f.key, f.queue, f.timeouts, f.channel, inspected, f.engine.CountCommand(), first, last)
}

// inspected is how many waiters' listeners an inspection counts.
const inspected = 64

// Channel is part of protocol.Protocol. Each waiter has its own.
func (f *fair) Channel(a *protocol.Acquisition) string {
	owner, _ := a.Owner.(string) // always one
	return f.WaiterChannel(owner)
}
