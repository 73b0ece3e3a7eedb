// Package clock provides a [Deadline] on two clocks, and a [Backoff] for retries.
package clock

import (
	"sync/atomic"
	"time"
)

// base is the origin of the monotonic readings.
var base = time.Now()

// Deadline is a time on two clocks, and has passed when it has on either: the monotonic clock
// cannot be set but stops while the machine is suspended; the wall clock does not stop but can be
// set. The zero Deadline has passed.
type Deadline struct {
	mono int64 // nanoseconds since base
	wall int64 // nanoseconds since the Unix epoch
}

// After returns the deadline d after start, which must come from time.Now.
func After(start time.Time, d time.Duration) Deadline {
	return Deadline{
		mono: addSaturated(int64(start.Sub(base)), int64(d)),
		wall: addSaturated(start.UnixNano(), int64(d)),
	}
}

func addSaturated(a, b int64) int64 {
	if sum := a + b; (sum > a) == (b > 0) {
		return sum
	}
	if b > 0 {
		return 1<<63 - 1
	}
	return -1 << 63
}

// Remaining returns the time left at now on the earlier clock; it may be negative.
func (d Deadline) Remaining(now time.Time) time.Duration {
	return d.remaining(int64(now.Sub(base)), now.UnixNano())
}

func (d Deadline) remaining(mono, wall int64) time.Duration {
	return time.Duration(min(d.mono-mono, d.wall-wall))
}

// Passed reports whether the deadline has passed on either clock.
func (d Deadline) Passed(now time.Time) bool { return d.Remaining(now) <= 0 }

// IsZero reports whether d is the zero Deadline.
func (d Deadline) IsZero() bool { return d == Deadline{} }

// Time returns the deadline with a monotonic reading.
func (d Deadline) Time() time.Time { return base.Add(time.Duration(d.mono)) }

// Atomic is a Deadline for concurrent readers and one writer. A reader may see one old and one new
// clock: since both only move forward, it errs toward "has passed". The zero value is the zero
// Deadline.
type Atomic struct {
	mono atomic.Int64
	wall atomic.Int64
}

// Store sets the deadline.
func (a *Atomic) Store(d Deadline) {
	a.mono.Store(d.mono)
	a.wall.Store(d.wall)
}

// Load returns the deadline.
func (a *Atomic) Load() Deadline {
	return Deadline{mono: a.mono.Load(), wall: a.wall.Load()}
}
