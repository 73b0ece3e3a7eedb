package clock

import (
	"context"
	"math/rand/v2"
	"time"
)

// Default bounds of a Backoff.
const (
	DefaultMin = 20 * time.Millisecond
	DefaultMax = time.Second
)

// Backoff is a pause that doubles from Min to Max, less a random part of up to one half, so that
// clients don't return at the same time. The zero value is ready. It is not safe for concurrent
// use.
type Backoff struct {
	// Min and Max bound the pause. Defaults: DefaultMin, and the larger of DefaultMax and Min.
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
	return b.last - rand.N(b.last/2+1) //nolint:gosec // jitter is no secret
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

// Failed counts a failure, whose pause Wait waits for.
func (b *Backoff) Failed() { b.until = time.Now().Add(b.Next()) }

// Failures returns the number of failures since the last Reset.
func (b *Backoff) Failures() int { return b.failures }

// Reset makes the next pause the shortest. It does not end a current one.
func (b *Backoff) Reset() { b.last, b.failures = 0, 0 }

// Wait waits for the end of the pause that the last Failed began. It returns false if ctx ended.
func (b *Backoff) Wait(ctx context.Context) bool {
	left := time.Until(b.until)
	if left <= 0 {
		return ctx.Err() == nil
	}
	return Sleep(ctx, left)
}

// Sleep waits for d. It returns false if ctx ended.
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
