package luasrc

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// The scripts of several plain locks at once. KEYS, ARGV, replies, effects and messages stand in
// the header of each file. [All] fills calls of them.
var (
	// AcquireAll takes many plain locks of one slot, or none of them. It runs three commands for
	// each free lock.
	AcquireAll = guarded("acquire_all")

	// ReleaseAll frees those of many plain locks of one slot that an owner holds. It may run late
	// or twice. It runs three commands for each lock that it frees.
	ReleaseAll = load("release_all")
)

// All fills calls of the scripts for several plain locks of one slot, as [Plain] does.
type All struct {
	// Keys and Channels are the names of the locks, each once, and of their channels, all
	// strings.
	Keys, Channels []any
	// Publish is PUBLISH or SPUBLISH.
	Publish any
}

// Acquire fills c with a call of [AcquireAll].
func (a *All) Acquire(c *transport.Call, owner, lease any) {
	c.Script, c.NumKeys = AcquireAll, len(a.Keys)
	c.Args = append(append(c.Args, a.Keys...), owner, lease)
}

// Release fills c with a call of [ReleaseAll].
func (a *All) Release(c *transport.Call, owner any) {
	c.Script, c.NumKeys = ReleaseAll, 2*len(a.Keys)
	c.Args = append(append(append(c.Args, a.Keys...), a.Channels...), owner, a.Publish, codec.MessageUnlock)
}
