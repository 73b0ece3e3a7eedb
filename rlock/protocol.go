package rlock

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

// plain is the protocol of the reentrant lock. Arguments that never change are
// boxed once.
type plain struct {
	name    string
	channel string

	key, channelArg, publish, message any
}

var _ protocol.Protocol = (*plain)(nil)

func newPlain(name string, publish any) *plain {
	p := &plain{name: name, channel: codec.LockChannel(name)}
	p.key, p.channelArg = p.name, p.channel
	p.publish, p.message = publish, codec.MessageUnlock
	return p
}

// Kind is part of protocol.Protocol.
func (p *plain) Kind() string { return "plain" }

// Key is part of protocol.Protocol.
func (p *plain) Key() string { return p.name }

// Acquire is part of protocol.Protocol.
func (p *plain) Acquire(c *transport.Call, a *protocol.Acquisition) {
	c.Script, c.NumKeys = luasrc.Acquire, 1
	c.Args = append(c.Args, p.key, a.Lease, a.Owner, protocol.Tell)
}

// Pass is part of protocol.Protocol.
func (p *plain) Pass(c *transport.Call, a *protocol.Acquisition, from any) {
	c.Script, c.NumKeys, c.Urgent = luasrc.Pass, 1, true
	c.Args = append(c.Args, p.key, a.Lease, a.Owner, from)
}

// Queues is part of protocol.Protocol.
func (p *plain) Queues() bool { return false }

// Try is part of protocol.Protocol.
func (p *plain) Try(c *transport.Call, a *protocol.Acquisition) { p.Acquire(c, a) }

// GiveUp is part of protocol.Protocol: there is nothing to give up.
func (p *plain) GiveUp(*transport.Call, *protocol.Acquisition) {}

// Reenter is part of protocol.Protocol.
func (p *plain) Reenter(c *transport.Call, a *protocol.Acquisition, target int64) {
	c.Script, c.NumKeys = luasrc.Reenter, 1
	c.Args = append(c.Args, p.key, a.Lease, a.Owner, target)
}

// Release is part of protocol.Protocol.
func (p *plain) Release(c *transport.Call, a *protocol.Acquisition, target int64) {
	c.Script, c.NumKeys, c.Urgent = luasrc.Release, 2, true
	c.Args = append(c.Args, p.key, p.channelArg, a.Owner, target, a.Lease, p.publish, p.message)
}

// ReleaseShared is part of protocol.Protocol.
func (p *plain) ReleaseShared(c *transport.Call, a *protocol.Acquisition, latch string) {
	c.Script, c.NumKeys, c.Urgent = luasrc.ReleaseShared, 3, true
	c.Args = append(c.Args, p.key, p.channelArg, latch, p.message, a.Lease, a.Owner, p.publish, protocol.LatchMillis)
}

// ForceRelease is part of protocol.Protocol.
func (p *plain) ForceRelease(c *transport.Call) {
	c.Script, c.NumKeys, c.Urgent = luasrc.ForceRelease, 2, true
	c.Args = append(c.Args, p.key, p.channelArg, p.publish, p.message)
}

// Inspect is part of protocol.Protocol.
func (p *plain) Inspect(c *transport.Call, _, _ int64) {
	c.Script, c.NumKeys = luasrc.Inspect, 1
	c.Args = append(c.Args, p.key)
}

// Channel is part of protocol.Protocol. All waiters share one.
func (p *plain) Channel(*protocol.Acquisition) string { return p.channel }
