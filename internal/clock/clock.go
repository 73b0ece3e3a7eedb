// Package clock has what the library knows about time: a [Deadline] on two clocks, and a
// [Backoff] between attempts at something that fails.
package clock

import (
	"sync/atomic"
	"time"
)

// base is the origin of the monotonic readings. Only differences matter.
var base = time.Now()

// Deadline is a moment on two clocks, and has passed when either says so: the monotonic one,
// which cannot be set but stands still while the machine is suspended, and the wall clock,
// which runs on but can be set. The zero Deadline has always passed.
// It is an immutable value.
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

// Remaining returns the time left at now by the clock that says less. It is
// zero or negative when the deadline has passed.
func (d Deadline) Remaining(now time.Time) time.Duration {
	return d.remaining(int64(now.Sub(base)), now.UnixNano())
}

func (d Deadline) remaining(mono, wall int64) time.Duration {
	return time.Duration(min(d.mono-mono, d.wall-wall))
}

// Passed reports whether the deadline has come by either clock.
func (d Deadline) Passed(now time.Time) bool { return d.Remaining(now) <= 0 }

// IsZero reports whether d is the zero Deadline.
func (d Deadline) IsZero() bool { return d == Deadline{} }

// Time returns the deadline as a time with a monotonic reading, for timers and
// for context deadlines.
func (d Deadline) Time() time.Time { return base.Add(time.Duration(d.mono)) }

// Atomic is a Deadline that many goroutines read while one moves it. The zero
// value holds the zero Deadline.
//
// The two clocks are stored one after the other. A reader in between sees one
// old and one new part, and since both only move forward, it errs towards "has
// passed" and by no more than the old deadline did.
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
