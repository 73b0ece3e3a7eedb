package mux

import (
	"math/rand/v2"
	"time"
)

// backoff is a pause that doubles, with a random part of up to half left out, so
// that the clients of a server that comes back do not all come at once.
type backoff struct {
	min, max time.Duration
	now      time.Duration
}

func (b *backoff) next() time.Duration {
	b.now = min(max(2*b.now, b.min), b.max)
	half := b.now / 2
	return b.now - rand.N(half+1) //nolint:gosec // jitter is no secret
}

func (b *backoff) reset() { b.now = 0 }
