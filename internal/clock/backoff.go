package clock

import (
	"context"
	"math/rand/v2"
	"time"
)

// DefaultMin and DefaultMax bound the pauses of a Backoff that has no bounds of its own.
const (
	DefaultMin = 20 * time.Millisecond
	DefaultMax = time.Second
)

// Backoff is a pause that doubles from Min to Max. Of each pause a random part between
// none and half is left out, so that the clients of a server that comes back do not all
// come at once. The zero value is ready. It is not safe for concurrent use.
type Backoff struct {
	// Min and Max bound the pause. Defaults: DefaultMin, and DefaultMax or Min if that is
	// more.
	Min, Max time.Duration

	last     time.Duration // the last pause, before the random part was left out
	failures int
	until    time.Time // when the pause since the last failure is over
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

// Failed counts a failure. The pause begins now: see Wait.
func (b *Backoff) Failed() { b.until = time.Now().Add(b.Next()) }

// Failures returns how many failures there were since the last Reset.
func (b *Backoff) Failures() int { return b.failures }

// Reset has the next pause be the shortest again. A pause that has begun goes on.
func (b *Backoff) Reset() { b.last, b.failures = 0, 0 }

// Wait waits until the pause since the last call of Failed is over: not at all when the
// failure was long ago, or there was none. It returns false when ctx ended before.
func (b *Backoff) Wait(ctx context.Context) bool {
	left := time.Until(b.until)
	if left <= 0 {
		return ctx.Err() == nil
	}
	return Sleep(ctx, left)
}

// Sleep waits for d. It returns false when ctx ended before.
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
