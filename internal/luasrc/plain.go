package luasrc

import (
	"slices"

	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

// The scripts for the plain lock. A count is shared if several processes may use the same owner.
var (
	Acquire       = load("acquire", guard)
	Reenter       = load("reenter")        // reenters a lock; may run twice with a target
	Release       = load("release")        // lowers an unshared count to a target; may run late or twice
	ReleaseShared = load("release_shared") // lowers a shared count by one, with Redisson's latch
	ForceRelease  = load("force_release")
	Pass          = load("pass") // passes a lock to an heir without sending a message
	Inspect       = load("inspect")
	Renew         = load("renew")     // extends leases of plain and fair locks
	Replicate     = load("replicate") // rewrites a plain or fair lock unchanged, for WAIT
	Foreign       = load("foreign")   // detects a hash that another program wrote
	KindOf        = load("kind_of")
)

const tell = "1"

// latchMillis is the TTL of a latch in milliseconds. Redisson never uses a shorter one.
var latchMillis any = int64(16_000)

func fill(c *transport.Call, script *transport.Script, keys int, args ...any) {
	c.Script, c.NumKeys = script, keys
	c.Args = append(c.Args, args...)
}

// Plain fills calls to the scripts for one plain lock. Each method requires an empty call, and does not change its
// Urgent and Vital fields. Owners are strings, and leases and waits are int64 milliseconds. They have type any so that
// the caller can convert them to interfaces once instead of once per call.
type Plain struct {
	// The names of the lock and its channel, both strings.
	Key, Channel any
	Publish      any // PUBLISH or SPUBLISH
	Tokens
}

// Acquire fills c with [Acquire] or [FencedAcquire]. If the lock is held, the reply names the holder.
func (p *Plain) Acquire(c *transport.Call, owner, lease any) {
	if p.Counter != nil {
		fill(c, FencedAcquire, 2, p.Key, p.Counter, owner, lease, p.Least)
		return
	}
	fill(c, Acquire, 1, p.Key, owner, lease, tell)
}

// Reenter fills c with [Reenter] or [FencedReenter].
func (p *Plain) Reenter(c *transport.Call, owner, lease any, target int64) {
	if p.Counter != nil {
		fill(c, FencedReenter, 2, p.Key, p.Counter, owner, lease, target, p.Least)
		return
	}
	fill(c, Reenter, 1, p.Key, owner, lease, target)
}

// Release fills c with [Release].
func (p *Plain) Release(c *transport.Call, owner, lease any, target int64) {
	fill(c, Release, 2, p.Key, p.Channel, owner, lease, target, p.Publish, protocol.MessageUnlock)
}

// ReleaseShared fills c with [ReleaseShared].
func (p *Plain) ReleaseShared(c *transport.Call, latch string, owner, lease any) {
	fill(c, ReleaseShared, 3, p.Key, p.Channel, latch, owner, lease, p.Publish, protocol.MessageUnlock, latchMillis)
}

// ForceRelease fills c with [ForceRelease].
func (p *Plain) ForceRelease(c *transport.Call) {
	fill(c, ForceRelease, 2, p.Key, p.Channel, p.Publish, protocol.MessageUnlock)
}

// Pass fills c with [Pass] or [FencedPass].
func (p *Plain) Pass(c *transport.Call, owner, heir, lease any) {
	if p.Counter != nil {
		fill(c, FencedPass, 2, p.Key, p.Counter, owner, heir, lease, p.Least)
		return
	}
	fill(c, Pass, 1, p.Key, owner, heir, lease)
}

// Inspect fills c with [Inspect].
func (p *Plain) Inspect(c *transport.Call) { fill(c, Inspect, 1, p.Key) }

// FillRenew fills c with [Renew] for n locks. It calls lock for each i from 0 to n-1.
func FillRenew(c *transport.Call, n int, lock func(i int) (key, owner, lease any)) {
	fillRenew(c, Renew, n, 0, lock)
}

// fillRenew leaves room for gap additional arguments after the keys.
func fillRenew(c *transport.Call, script *transport.Script, n, gap int, hold func(i int) (key, owner, lease any)) {
	c.Script, c.NumKeys = script, n
	c.Args = slices.Grow(c.Args, 3*n+gap)[:3*n+gap]
	for i := range n {
		c.Args[i], c.Args[n+gap+2*i], c.Args[n+gap+2*i+1] = hold(i)
	}
}

// FillReplicate fills c with [Replicate].
func FillReplicate(c *transport.Call, key, owner any) { fill(c, Replicate, 1, key, owner) }

// FillKindOf fills c with [KindOf].
func FillKindOf(c *transport.Call, key any) { fill(c, KindOf, 1, key) }

// FillForeign fills c with [Foreign].
func FillForeign(c *transport.Call, key any) { fill(c, Foreign, 1, key) }

// The scripts that grant plain and fair locks with fencing tokens. Each works like the script after which it is named.
var (
	FencedAcquire     = load("fenced_acquire", guard)
	FencedReenter     = load("fenced_reenter")
	FencedPass        = load("fenced_pass")
	FencedFairTry     = load("fenced_fair_try", guard)
	FencedFairAcquire = load("fenced_fair_acquire", guard)
	FencedFairReenter = load("fenced_fair_reenter")
	Raise             = load("raise") // raises a token counter; may run twice
)

// ErrBehind is the error text with which a script fails if the counter is below Least.
const ErrBehind = "FENCE_EPOCH"

// Tokens configures a fenced lock, each grant of which has a token. The zero value is for a lock without tokens.
type Tokens struct {
	// Counter is the name of the lock's counter as a string, or nil if the lock has no tokens.
	Counter any
	// Least is the minimum value of the counter as an int64. 0 allows any value.
	Least any
}

// FillRaise fills c with [Raise].
func FillRaise(c *transport.Call, counter, least any) { fill(c, Raise, 1, counter, least) }

// The scripts for several plain locks.
var (
	AcquireAll = load("acquire_all", guard) // acquires all the given plain locks, or none of them
	ReleaseAll = load("release_all")        // releases an owner's locks; may run late or twice
)

// All fills calls to the scripts for several plain locks in the same slot.
type All struct {
	// The names of the locks, without duplicates, and of their channels. All of them are strings.
	Keys, Channels []any
	Publish        any // PUBLISH or SPUBLISH
}

// Acquire fills c with [AcquireAll].
func (a *All) Acquire(c *transport.Call, owner, lease any) {
	c.Script, c.NumKeys = AcquireAll, len(a.Keys)
	c.Args = append(append(c.Args, a.Keys...), owner, lease)
}

// Release fills c with [ReleaseAll].
func (a *All) Release(c *transport.Call, owner any) {
	c.Script, c.NumKeys = ReleaseAll, 2*len(a.Keys)
	c.Args = append(append(append(c.Args, a.Keys...), a.Channels...), owner, a.Publish, protocol.MessageUnlock)
}
