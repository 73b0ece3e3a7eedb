package luasrc

import (
	_ "embed" // for the scripts' texts

	"github.com/redlatch/redlatch/transport"
)

var (
	//go:embed acquire.lua
	acquireText string
	//go:embed release.lua
	releaseText string
	//go:embed force_release.lua
	forceReleaseText string
	//go:embed renew.lua
	renewText string
)

// Acquire takes a free lock or enters it again. KEYS: lock. ARGV: lease in
// milliseconds, owner. Reply: nil when acquired, else the milliseconds that the
// lock has left, −1 for ever. It runs three commands on a free lock.
var Acquire = transport.NewScript("acquire", acquireText)

// Release lowers the count of an owner that one process alone uses to a target,
// or frees the lock with target 0. KEYS: lock, channel. ARGV: owner, target,
// lease in milliseconds, publish command, message. Reply: nil when the owner
// does not hold the lock, 1 when it is free now, 0 when it is still held. It may
// run late or twice. It runs three commands when it frees or lowers.
var Release = transport.NewScript("release", releaseText)

// ForceRelease frees a lock, whoever holds it. KEYS: lock, channel. ARGV:
// publish command, message. Reply: 1 when there was a holder, else 0.
var ForceRelease = transport.NewScript("force_release", forceReleaseText)

// Renew extends the leases of the locks whose owners still hold them. KEYS: n
// different locks of one hash slot. ARGV: n pairs of owner and lease in
// milliseconds. Reply: an array of n, 1 for renewed and 0 for not held. It never
// creates a key.
var Renew = transport.NewScript("renew", renewText)
