package luasrc

import (
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/transport"
)

// The scripts for semaphores whose permits have IDs.
var (
	PermitAcquire   = load("permit_acquire", guard) // acquires permits with new IDs
	PermitRelease   = load("permit_release", guard) // releases permits by their IDs; may run late or twice
	PermitRenew     = load("permit_renew")
	PermitReplicate = load("permit_replicate") // rewrites the leases of permits unchanged for WAIT
	PermitCount     = load("permit_count")
	PermitSet       = load("permit_set", guard) // sets the number of permits, including acquired ones; may run twice
	PermitInspect   = load("permit_inspect")
)

// The scripts for a semaphore that only counts its permits. The last two also work for permits with IDs.
var (
	SemaphoreAcquire         = load("semaphore_acquire", guard)          // acquires permits; must not run twice
	SemaphoreDrain           = load("semaphore_drain", guard)            // acquires all available permits; must not run twice
	SemaphoreReleaseExisting = load("semaphore_release_existing", guard) // releases permits; must not run twice
	SemaphoreAdd             = load("semaphore_add", guard)              // changes the number of available permits; must not run twice
	SemaphoreTrySet          = load("semaphore_try_set", guard)          // creates a semaphore; may run twice
)

// Counter fills calls to the scripts for one semaphore that only counts its permits. Numbers of permits are of type
// int64.
type Counter struct {
	// The names of the semaphore and its channel, both of which are strings.
	Key, Channel any
	Publish      any // PUBLISH or SPUBLISH
}

// Acquire fills c with [SemaphoreAcquire].
func (s *Counter) Acquire(c *transport.Call, n any) { fill(c, SemaphoreAcquire, 1, s.Key, n) }

// Drain fills c with [SemaphoreDrain].
func (s *Counter) Drain(c *transport.Call) { fill(c, SemaphoreDrain, 1, s.Key) }

// ReleaseExisting fills c with [SemaphoreReleaseExisting].
func (s *Counter) ReleaseExisting(c *transport.Call, n int64) {
	fill(c, SemaphoreReleaseExisting, 2, s.Key, s.Channel, n, s.Publish)
}

// Add fills c with [SemaphoreAdd].
func (s *Counter) Add(c *transport.Call, n any) {
	fill(c, SemaphoreAdd, 2, s.Key, s.Channel, n, s.Publish)
}

// TrySet fills c with [SemaphoreTrySet]. The TTL is in milliseconds, or 0 if the semaphore does not expire.
func (s *Counter) TrySet(c *transport.Call, n, ttl int64) {
	fill(c, SemaphoreTrySet, 2, s.Key, s.Channel, n, s.Publish, ttl)
}

// IDSize is the size of a permit's ID in bytes.
const IDSize = 16

// Permits fills calls to the scripts for one semaphore whose permits have IDs. The argument ids is a string of
// concatenated IDs, each of which is [IDSize] bytes long, and now is in milliseconds since 1970.
type Permits struct {
	Counter
	Permits any
}

// Acquire fills c with [PermitAcquire].
func (s *Permits) Acquire(c *transport.Call, now int64, ids, lease any) {
	fill(c, PermitAcquire, 3, s.Key, s.Permits, s.Channel, now, ids, lease, s.Publish)
}

// Release fills c with [PermitRelease]. The argument size is the size of each ID in bytes. It is not [IDSize] if the
// permits were created manually.
func (s *Permits) Release(c *transport.Call, now int64, ids any, size int64) {
	fill(c, PermitRelease, 3, s.Key, s.Permits, s.Channel, now, ids, size, s.Publish)
}

// Replicate fills c with [PermitReplicate].
func (s *Permits) Replicate(c *transport.Call, ids any) { fill(c, PermitReplicate, 1, s.Permits, ids) }

// Count fills c with [PermitCount].
func (s *Permits) Count(c *transport.Call, now int64) { fill(c, PermitCount, 2, s.Key, s.Permits, now) }

// Set fills c with [PermitSet].
func (s *Permits) Set(c *transport.Call, n int64) {
	fill(c, PermitSet, 3, s.Key, s.Permits, s.Channel, n, s.Publish)
}

// Inspect fills c with [PermitInspect] for the permits from first to last. Use 0 and -1 for all permits.
func (s *Permits) Inspect(c *transport.Call, first, last int64) {
	fill(c, PermitInspect, 2, s.Key, s.Permits, first, last)
}

// FillPermitRenew fills c with [PermitRenew] for n holds. It calls permits for each i from 0 to n-1. The key is that of
// the sorted set.
func FillPermitRenew(c *transport.Call, now int64, n int, permits func(i int) (key, ids, lease any)) {
	fillRenew(c, PermitRenew, n, 1, permits)
	c.Args[n] = now
}

// The scripts for the count-down latch.
var (
	LatchSet       = load("latch_set", guard)        // sets the count of a latch that has none
	LatchCountDown = load("latch_count_down", guard) // lowers the count by one; must not run twice
	LatchDelete    = load("latch_delete", guard)
)

// Latch fills calls to the scripts for one count-down latch.
type Latch struct {
	// The names of the latch and its channel, both of which are strings.
	Key, Channel any
	Publish      any // PUBLISH or SPUBLISH
}

// Set fills c with [LatchSet].
func (l *Latch) Set(c *transport.Call, count int64) {
	fill(c, LatchSet, 2, l.Key, l.Channel, count, l.Publish, protocol.MessageClosed)
}

// CountDown fills c with [LatchCountDown].
func (l *Latch) CountDown(c *transport.Call) {
	fill(c, LatchCountDown, 2, l.Key, l.Channel, l.Publish, protocol.MessageOpened)
}

// Delete fills c with [LatchDelete].
func (l *Latch) Delete(c *transport.Call) {
	fill(c, LatchDelete, 2, l.Key, l.Channel, l.Publish, protocol.MessageClosed)
}
