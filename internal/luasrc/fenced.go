package luasrc

import "github.com/redlatch/redlatch/transport"

// The scripts of the locks with tokens, plain and fair: those that grant. All others are
// shared with the lock without tokens. KEYS, ARGV, replies, effects and messages stand in the
// header of each file. [Fenced] and [FencedFair] fill calls of them.
var (
	// FencedAcquire is [Acquire] with the next token. It runs four commands on a free lock.
	FencedAcquire = guarded("fenced_acquire")

	// FencedReenter is [Reenter] with the next token.
	FencedReenter = load("fenced_reenter")

	// FencedPass is [Pass] with the next token for the heir.
	FencedPass = load("fenced_pass")

	// FencedFairTry is [FairTry] with the next token.
	FencedFairTry = guarded("fenced_fair_try")

	// FencedFairAcquire is [FairAcquire] with the next token.
	FencedFairAcquire = guarded("fenced_fair_acquire")

	// FencedFairReenter is [FairReenter] with the next token.
	FencedFairReenter = load("fenced_fair_reenter")

	// Raise raises a counter of tokens to a least. It may run more than once.
	Raise = load("raise")
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
	c.Script, c.NumKeys = FencedAcquire, 2
	c.Args = append(c.Args, f.Key, f.Counter, owner, lease, f.Least)
}

// Reenter fills c with a call of [FencedReenter].
func (f *Fenced) Reenter(c *transport.Call, owner, lease any, target int64) {
	c.Script, c.NumKeys = FencedReenter, 2
	c.Args = append(c.Args, f.Key, f.Counter, owner, lease, target, f.Least)
}

// Pass fills c with a call of [FencedPass].
func (f *Fenced) Pass(c *transport.Call, owner, heir, lease any) {
	c.Script, c.NumKeys = FencedPass, 2
	c.Args = append(c.Args, f.Key, f.Counter, owner, heir, lease, f.Least)
}

// FencedFair fills calls of the scripts that grant a fair lock with tokens, as [Fair] does.
type FencedFair struct {
	// Key, Queue, Timeouts, Counter and Channel are the names of the lock, of its queue, of its
	// deadlines, of its counter and of its channel, all strings.
	Key, Queue, Timeouts, Counter, Channel any
	// Least is what the counter must have reached, an int64, 0 for anything.
	Least any
}

func (f *FencedFair) begin(c *transport.Call, script *transport.Script) {
	c.Script, c.NumKeys = script, 5
	c.Args = append(c.Args, f.Key, f.Queue, f.Timeouts, f.Counter, f.Channel)
}

// Try fills c with a call of [FencedFairTry].
func (f *FencedFair) Try(c *transport.Call, now, owner, wait, lease any) {
	f.begin(c, FencedFairTry)
	c.Args = append(c.Args, now, owner, wait, lease, f.Least)
}

// Acquire fills c with a call of [FencedFairAcquire].
func (f *FencedFair) Acquire(c *transport.Call, now, owner, wait, lease any) {
	f.begin(c, FencedFairAcquire)
	c.Args = append(c.Args, now, owner, wait, lease, f.Least)
}

// Reenter fills c with a call of [FencedFairReenter].
func (f *FencedFair) Reenter(c *transport.Call, now, owner, lease any, target int64) {
	f.begin(c, FencedFairReenter)
	c.Args = append(c.Args, now, owner, lease, target, f.Least)
}

// FillRaise fills c with a call of [Raise].
func FillRaise(c *transport.Call, counter, least any) {
	c.Script, c.NumKeys = Raise, 1
	c.Args = append(c.Args, counter, least)
}
