package rlock

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

// plain is the protocol of the reentrant lock.
type plain struct {
	name    string
	channel string
	scripts luasrc.Plain
}

var _ protocol.Protocol = (*plain)(nil)

func newPlain(name string, publish any) *plain {
	channel := codec.LockChannel(name)
	return &plain{name: name, channel: channel, scripts: luasrc.Plain{Key: name, Channel: channel, Publish: publish}}
}

// Kind is part of protocol.Protocol.
func (p *plain) Kind() string { return "plain" }

// Key is part of protocol.Protocol.
func (p *plain) Key() string { return p.name }

// Acquire is part of protocol.Protocol.
func (p *plain) Acquire(c *transport.Call, a *protocol.Acquisition) {
	p.scripts.Acquire(c, a.Owner, a.Lease)
}

// Pass is part of protocol.Protocol.
func (p *plain) Pass(c *transport.Call, a *protocol.Acquisition, from any) {
	p.scripts.Pass(c, from, a.Owner, a.Lease)
	c.Urgent = true
}

// Queues is part of protocol.Protocol.
func (p *plain) Queues() bool { return false }

// Try is part of protocol.Protocol.
func (p *plain) Try(c *transport.Call, a *protocol.Acquisition) { p.Acquire(c, a) }

// GiveUp is part of protocol.Protocol: there is nothing to give up.
func (p *plain) GiveUp(*transport.Call, *protocol.Acquisition) {}

// Reenter is part of protocol.Protocol.
func (p *plain) Reenter(c *transport.Call, a *protocol.Acquisition, target int64) {
	p.scripts.Reenter(c, a.Owner, a.Lease, target)
}

// Release is part of protocol.Protocol.
func (p *plain) Release(c *transport.Call, a *protocol.Acquisition, target int64) {
	p.scripts.Release(c, a.Owner, a.Lease, target)
	c.Urgent = true
}

// ReleaseShared is part of protocol.Protocol.
func (p *plain) ReleaseShared(c *transport.Call, a *protocol.Acquisition, latch string) {
	p.scripts.ReleaseShared(c, latch, a.Owner, a.Lease)
	c.Urgent = true
}

// ForceRelease is part of protocol.Protocol.
func (p *plain) ForceRelease(c *transport.Call) {
	p.scripts.ForceRelease(c)
	c.Urgent = true
}

// Inspect is part of protocol.Protocol.
func (p *plain) Inspect(c *transport.Call, _, _ int64) {
	p.scripts.Inspect(c)
}

// Channel is part of protocol.Protocol. All waiters share one.
func (p *plain) Channel(*protocol.Acquisition) string { return p.channel }
