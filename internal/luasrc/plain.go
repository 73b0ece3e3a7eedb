package luasrc

import (
	"slices"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// The scripts of the plain lock. KEYS, ARGV, replies, effects and messages stand in the
// header of each file. [Plain], [FillRenew] and [FillReplicate] fill calls of them. A count is
// unshared if one process alone uses its owner, and shared if several may.
var (
	Acquire       = guarded("acquire")     // takes a free lock or enters it again
	Reenter       = load("reenter")        // enters a lock for its owner; may run twice with a target
	Release       = load("release")        // lowers an unshared count to a target; may run late or twice
	ReleaseShared = load("release_shared") // lowers a shared count by one, with Redisson's latch
	ForceRelease  = load("force_release")  // frees a lock, whichever owner holds it
	Pass          = load("pass")           // passes a lock on to an heir, without freeing it and without a message
	Inspect       = load("inspect")        // reads a lock
	Renew         = load("renew")          // extends the leases of locks that are held; fair locks use it, too
	Replicate     = load("replicate")      // writes a lock once more as it is, for WAIT; fair locks use it, too
	Foreign       = load("foreign")        // tells a hash of another program from a lock
	KindOf        = load("kind_of")        // names the kind of object under a key
)

// tell is the argument with which a refusal says more than a number.
const tell = "1"

// latchMillis is the time to live of a latch, in milliseconds: the least that
// Redisson's has.
var latchMillis any = int64(16_000)

// fill fills c, a call that was reset, with a call of a script: args, of which so many are keys.
func fill(c *transport.Call, script *transport.Script, keys int, args ...any) {
	c.Script, c.NumKeys = script, keys
	c.Args = append(c.Args, args...)
}

// Plain fills calls of the scripts for one plain lock. Each method expects a call that
// was reset and leaves Urgent and Vital alone. Owners are strings, leases and waits
// milliseconds as int64: the caller boxes them once.
type Plain struct {
	// Key and Channel are the names of the lock and of its channel, both strings.
	Key, Channel any
	// Publish is PUBLISH or SPUBLISH.
	Publish any
}

// Acquire fills c with a call of [Acquire] whose refusal names the holder.
func (p *Plain) Acquire(c *transport.Call, owner, lease any) {
	fill(c, Acquire, 1, p.Key, owner, lease, tell)
}

// Reenter fills c with a call of [Reenter].
func (p *Plain) Reenter(c *transport.Call, owner, lease any, target int64) {
	fill(c, Reenter, 1, p.Key, owner, lease, target)
}

// Release fills c with a call of [Release].
func (p *Plain) Release(c *transport.Call, owner, lease any, target int64) {
	fill(c, Release, 2, p.Key, p.Channel, owner, lease, target, p.Publish, codec.MessageUnlock)
}

// ReleaseShared fills c with a call of [ReleaseShared].
func (p *Plain) ReleaseShared(c *transport.Call, latch string, owner, lease any) {
	fill(c, ReleaseShared, 3, p.Key, p.Channel, latch, owner, lease, p.Publish, codec.MessageUnlock, latchMillis)
}

// ForceRelease fills c with a call of [ForceRelease].
func (p *Plain) ForceRelease(c *transport.Call) {
	fill(c, ForceRelease, 2, p.Key, p.Channel, p.Publish, codec.MessageUnlock)
}

// Pass fills c with a call of [Pass].
func (p *Plain) Pass(c *transport.Call, owner, heir, lease any) {
	fill(c, Pass, 1, p.Key, owner, heir, lease)
}

// Inspect fills c with a call of [Inspect].
func (p *Plain) Inspect(c *transport.Call) { fill(c, Inspect, 1, p.Key) }

// FillRenew fills c with a call of [Renew] for n locks. It asks for each lock once, in
// order: its key, its owner and its lease.
func FillRenew(c *transport.Call, n int, lock func(i int) (key, owner, lease any)) {
	c.Script, c.NumKeys = Renew, n
	c.Args = slices.Grow(c.Args, 3*n)[:3*n]
	for i := range n {
		c.Args[i], c.Args[n+2*i], c.Args[n+2*i+1] = lock(i)
	}
}

// FillReplicate fills c with a call of [Replicate].
func FillReplicate(c *transport.Call, key, owner any) { fill(c, Replicate, 1, key, owner) }

// FillKindOf fills c with a call of [KindOf].
func FillKindOf(c *transport.Call, key any) { fill(c, KindOf, 1, key) }

// FillForeign fills c with a call of [Foreign].
func FillForeign(c *transport.Call, key any) { fill(c, Foreign, 1, key) }

// The scripts of the locks with tokens, plain and fair: those that grant. All others are
// shared with the lock without tokens. KEYS, ARGV, replies, effects and messages stand in the
// header of each file. [Fenced] and [FencedFair] fill calls of them.
var (
	FencedAcquire     = guarded("fenced_acquire")      // [Acquire] with the next token
	FencedReenter     = load("fenced_reenter")         // [Reenter] with the next token
	FencedPass        = load("fenced_pass")            // [Pass] with the next token for the heir
	FencedFairTry     = guarded("fenced_fair_try")     // [FairTry] with the next token
	FencedFairAcquire = guarded("fenced_fair_acquire") // [FairAcquire] with the next token
	FencedFairReenter = load("fenced_fair_reenter")    // [FairReenter] with the next token
	Raise             = load("raise")                  // raises a counter of tokens to a least; may run twice
)

// ErrBehind is the text of the error of a script whose counter has not reached the least.
const ErrBehind = "FENCE_EPOCH"

// Fenced fills calls of the scripts that grant a plain lock with tokens, as [Plain] does.
type Fenced struct {
	// Key and Counter are the names of the lock and of its counter, both strings.
	Key, Counter any
	// Least is what the counter must have reached, an int64, 0 for anything.
	Least any
}

// Acquire fills c with a call of [FencedAcquire].
func (f *Fenced) Acquire(c *transport.Call, owner, lease any) {
	fill(c, FencedAcquire, 2, f.Key, f.Counter, owner, lease, f.Least)
}

// Reenter fills c with a call of [FencedReenter].
func (f *Fenced) Reenter(c *transport.Call, owner, lease any, target int64) {
	fill(c, FencedReenter, 2, f.Key, f.Counter, owner, lease, target, f.Least)
}

// Pass fills c with a call of [FencedPass].
func (f *Fenced) Pass(c *transport.Call, owner, heir, lease any) {
	fill(c, FencedPass, 2, f.Key, f.Counter, owner, heir, lease, f.Least)
}

// FencedFair fills calls of the scripts that grant a fair lock with tokens, as [Fair] does.
type FencedFair struct {
	// Key, Queue, Timeouts, Counter and Channel are the names of the lock, of its queue, of its
	// deadlines, of its counter and of its channel, all strings.
	Key, Queue, Timeouts, Counter, Channel any
	// Least is what the counter must have reached, an int64, 0 for anything.
	Least any
}

// fill fills c with a call of a script: the lock's keys, and then args.
func (f *FencedFair) fill(c *transport.Call, script *transport.Script, args ...any) {
	fill(c, script, 5, f.Key, f.Queue, f.Timeouts, f.Counter, f.Channel)
	c.Args = append(c.Args, args...)
}

// Try fills c with a call of [FencedFairTry].
func (f *FencedFair) Try(c *transport.Call, now, owner, wait, lease any) {
	f.fill(c, FencedFairTry, now, owner, wait, lease, f.Least)
}

// Acquire fills c with a call of [FencedFairAcquire].
func (f *FencedFair) Acquire(c *transport.Call, now, owner, wait, lease any) {
	f.fill(c, FencedFairAcquire, now, owner, wait, lease, f.Least)
}

// Reenter fills c with a call of [FencedFairReenter].
func (f *FencedFair) Reenter(c *transport.Call, now, owner, lease any, target int64) {
	f.fill(c, FencedFairReenter, now, owner, lease, target, f.Least)
}

// FillRaise fills c with a call of [Raise].
func FillRaise(c *transport.Call, counter, least any) { fill(c, Raise, 1, counter, least) }

// The scripts of several plain locks at once. KEYS, ARGV, replies, effects and messages stand in
// the header of each file. [All] fills calls of them.
var (
	AcquireAll = guarded("acquire_all") // takes many plain locks of one slot, or none of them
	ReleaseAll = load("release_all")    // frees those that an owner holds; may run late or twice
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
