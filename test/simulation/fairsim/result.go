package fairsim

import "time"

// Result is what a run has counted.
type Result struct {
	// Time is how long the fleet was watched, and Granted how often it got the lock.
	Time    time.Duration
	Granted int64

	// PrunedRedlatch and PrunedRedisson are live waiters that lost their places
	// because their deadlines came. PrunedUnkept are those of Redisson that did while
	// no process of Redlatch's had a waiter in the queue.
	PrunedRedlatch, PrunedRedisson, PrunedUnkept int64
	// EvictedRedlatch and EvictedRedisson are live waiters that were taken for dead.
	EvictedRedlatch, EvictedRedisson int64
	// Adopted are places of dead waiters that were removed just when another acquisition of
	// the same thread had come to use them.
	Adopted int64

	// Lost are holds whose processes were cut off for so long that the leases ended.
	Lost int64

	// Dead are places that were left behind, EvictedDead and PrunedDead those that
	// went in one way or the other.
	Dead, EvictedDead, PrunedDead int64
	// LongestBlock is the longest time, in milliseconds, for which a dead waiter blocked
	// the lock while it was free; Longest is the longest wait of a waiter that got the
	// lock.
	LongestBlock, Longest int64

	// Over is by how many milliseconds a deadline was at most later than for those
	// that were in the queue at that moment it should have been: others may have left
	// it earlier than was reckoned.
	Over int64

	// Idle is for how many milliseconds the lock was free while live waiters queued.
	Idle int64

	// Faults counts all that must never be, and FirstFaults tells the first of them.
	Faults      int
	FirstFaults []string
}

// IdleShare is the share of the time for which the lock was free while live waiters
// queued.
func (r Result) IdleShare() float64 {
	if r.Time == 0 {
		return 0
	}
	return float64(r.Idle) / float64(r.Time.Milliseconds())
}

// Pruned is how many live waiters lost their places because their deadlines came.
func (r Result) Pruned() int64 { return r.PrunedRedlatch + r.PrunedRedisson + r.PrunedUnkept }

// PerThousand is n for a thousand acquisitions.
func (r Result) PerThousand(n int64) float64 {
	if r.Granted == 0 {
		return 0
	}
	return 1000 * float64(n) / float64(r.Granted)
}
