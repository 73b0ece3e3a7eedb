// Package clock provides a [Deadline] on two clocks, and a [Backoff] for retries.
package clock

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// base is the origin of the monotonic readings.
var base = time.Now()

// Deadline is a deadline on two clocks. It passes when it has passed on either of them. The monotonic clock cannot be
// set but stops while the machine is suspended; the wall clock does not stop but can be set. The zero Deadline has
// passed.
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

// Remaining returns the time left at now on the clock that is closer to the deadline; it may be negative.
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

// Atomic is a Deadline for concurrent readers and one writer. A reader may see an old value for one clock and a new
// value for the other. Because both only move forward, the deadline then passes too early, never too late.
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

// Default bounds of a Backoff.
const (
	DefaultMin = 20 * time.Millisecond
	DefaultMax = time.Second
)

// Backoff is a pause that doubles from Min to Max, minus a random part of up to one half. The zero Backoff is ready to
// use. It is not safe for concurrent use.
type Backoff struct {
	// Min and Max bound the pause. The defaults are DefaultMin, and the larger of DefaultMax and
	// Min.
	Min, Max time.Duration

	last     time.Duration // last pause without the random part
	failures int
	until    time.Time // end of the pause after the last failure
}

// Next counts a failure and returns the pause after it.
func (b *Backoff) Next() time.Duration {
	least, most := b.bounds()
	b.failures++
	b.last = min(max(2*b.last, least), most)
	return b.last - rand.N(b.last/2+1) //nolint:gosec // jitter is not a secret
}

func (b *Backoff) bounds() (least, most time.Duration) {
	if least = b.Min; least <= 0 {
		least = DefaultMin
	}
	if most = b.Max; most <= 0 {
		most = DefaultMax
	}
	return least, max(least, most)
}

// Failed counts a failure and begins the pause after it.
func (b *Backoff) Failed() { b.until = time.Now().Add(b.Next()) }

// Failures returns the number of failures since the last Reset.
func (b *Backoff) Failures() int { return b.failures }

// Reset makes the next pause the shortest one. It does not end the current pause.
func (b *Backoff) Reset() { b.last, b.failures = 0, 0 }

// Wait waits for the end of the pause begun by the last call to Failed. It returns false if ctx has ended.
func (b *Backoff) Wait(ctx context.Context) bool {
	left := time.Until(b.until)
	if left <= 0 {
		return ctx.Err() == nil
	}
	return Sleep(ctx, left)
}

// Sleep waits for d. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
