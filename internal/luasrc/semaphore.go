package luasrc

import (
	"slices"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// The scripts of semaphores. KEYS, ARGV, replies, effects and messages stand in the header of
// each file. [Permits], [Counter] and [FillPermitRenew] fill calls of them. These are for permits
// that have ids.
var (
	PermitAcquire   = guarded("permit_acquire") // takes permits for a time; its ids are never used before
	PermitRelease   = guarded("permit_release") // gives permits back by their ids; may run late or twice
	PermitRenew     = load("permit_renew")      // extends leases of permits that are taken still
	PermitReplicate = load("permit_replicate")  // writes the leases of permits once more as they are, for WAIT
	PermitCount     = load("permit_count")      // counts the permits that are available and those that are taken
	PermitSet       = guarded("permit_set")     // sets how many permits there are, taken ones included; may run twice
	PermitInspect   = load("permit_inspect")    // reads a semaphore and who has its permits
)

// The scripts of a semaphore that only counts, of which the last two also serve one whose
// permits have ids.
var (
	SemaphoreAcquire = guarded("semaphore_acquire") // takes permits; must not run twice
	SemaphoreDrain   = guarded("semaphore_drain")   // takes all permits that are available; must not run twice
	SemaphoreAdd     = guarded("semaphore_add")     // makes more permits available, or fewer; must not run twice
	SemaphoreTrySet  = guarded("semaphore_try_set") // makes a semaphore; may run twice
)

// Counter fills calls of the scripts for one semaphore that only counts, as [Plain] does. How
// many permits a call is about is an int64.
type Counter struct {
	// Key and Channel are the names of the semaphore and of its channel, both strings.
	Key, Channel any
	// Publish is PUBLISH or SPUBLISH.
	Publish any
}

// Acquire fills c with a call of [SemaphoreAcquire].
func (s *Counter) Acquire(c *transport.Call, n any) { fill(c, SemaphoreAcquire, 1, s.Key, n) }

// Drain fills c with a call of [SemaphoreDrain].
func (s *Counter) Drain(c *transport.Call) { fill(c, SemaphoreDrain, 1, s.Key) }

// Add fills c with a call of [SemaphoreAdd].
func (s *Counter) Add(c *transport.Call, n any) {
	fill(c, SemaphoreAdd, 2, s.Key, s.Channel, n, s.Publish)
}

// TrySet fills c with a call of [SemaphoreTrySet]. The time to live is in milliseconds, 0 for
// none.
func (s *Counter) TrySet(c *transport.Call, n, ttl int64) {
	fill(c, SemaphoreTrySet, 2, s.Key, s.Channel, n, s.Publish, ttl)
}

// IDSize is how many bytes the id of a permit has.
const IDSize = 16

// Permits fills calls of the scripts for one semaphore whose permits have ids, as [Plain] does.
// Ids are strings of 16 bytes for each permit, one behind the other; now is in milliseconds since
// 1970, an int64.
type Permits struct {
	Counter
	// Permits is the name of the sorted set of permits, a string.
	Permits any
}

// Acquire fills c with a call of [PermitAcquire].
func (s *Permits) Acquire(c *transport.Call, now int64, ids, lease any) {
	fill(c, PermitAcquire, 3, s.Key, s.Permits, s.Channel, now, ids, lease, s.Publish)
}

// Release fills c with a call of [PermitRelease]. Each id has the same size in bytes: [IDSize],
// unless the permits were made by hand.
func (s *Permits) Release(c *transport.Call, now int64, ids any, size int64) {
	fill(c, PermitRelease, 3, s.Key, s.Permits, s.Channel, now, ids, size, s.Publish)
}

// Replicate fills c with a call of [PermitReplicate].
func (s *Permits) Replicate(c *transport.Call, ids any) { fill(c, PermitReplicate, 1, s.Permits, ids) }

// Count fills c with a call of [PermitCount].
func (s *Permits) Count(c *transport.Call, now int64) { fill(c, PermitCount, 2, s.Key, s.Permits, now) }

// Set fills c with a call of [PermitSet].
func (s *Permits) Set(c *transport.Call, n int64) {
	fill(c, PermitSet, 3, s.Key, s.Permits, s.Channel, n, s.Publish)
}

// Inspect fills c with a call of [PermitInspect] for the permits from first to last, in the
// order in which they end, 0, -1 for all.
func (s *Permits) Inspect(c *transport.Call, first, last int64) {
	fill(c, PermitInspect, 2, s.Key, s.Permits, first, last)
}

// FillPermitRenew fills c with a call of [PermitRenew] for n times permits of one semaphore. It
// asks for each once, in order: the name of its sorted set, the ids and the lease.
func FillPermitRenew(c *transport.Call, now int64, n int, permits func(i int) (key, ids, lease any)) {
	c.Script, c.NumKeys = PermitRenew, n
	c.Args = slices.Grow(c.Args, 3*n+1)[:3*n+1]
	c.Args[n] = now
	for i := range n {
		c.Args[i], c.Args[n+1+2*i], c.Args[n+2+2*i] = permits(i)
	}
}

// The scripts of the count-down latch. KEYS, ARGV, replies, effects and messages stand in the
// header of each file. [Latch] fills calls of them.
var (
	LatchSet       = guarded("latch_set")        // sets the count of a latch that has none
	LatchCountDown = guarded("latch_count_down") // lowers the count by one; must not be repeated
	LatchDelete    = guarded("latch_delete")     // deletes the count
)

// Latch fills calls of the scripts for one count-down latch, as [Plain] does.
type Latch struct {
	// Key and Channel are the names of the latch and of its channel, both strings.
	Key, Channel any
	// Publish is PUBLISH or SPUBLISH.
	Publish any
}

// Set fills c with a call of [LatchSet].
func (l *Latch) Set(c *transport.Call, count int64) {
	fill(c, LatchSet, 2, l.Key, l.Channel, count, l.Publish, codec.MessageClosed)
}

// CountDown fills c with a call of [LatchCountDown].
func (l *Latch) CountDown(c *transport.Call) {
	fill(c, LatchCountDown, 2, l.Key, l.Channel, l.Publish, codec.MessageOpened)
}

// Delete fills c with a call of [LatchDelete].
func (l *Latch) Delete(c *transport.Call) {
	fill(c, LatchDelete, 2, l.Key, l.Channel, l.Publish, codec.MessageClosed)
}
