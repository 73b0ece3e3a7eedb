package stats

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// fineBits sets the width of a bucket: 2^-8 of its value, 0.4 %.
	fineBits = 8
	// octaves covers nanoseconds up to 2^(fineBits+octaves), more than an hour.
	octaves = 35
)

// Histogram counts durations in buckets 0.4 % wide. Its zero value is empty and
// ready. All methods are safe for concurrent use; adding costs three atomic
// operations.
type Histogram struct {
	buckets [(octaves + 1) << fineBits]atomic.Uint32
	count   atomic.Int64
	max     atomic.Int64
}

// Add counts d; less than 0 counts as 0.
func (h *Histogram) Add(d time.Duration) {
	n := max(int64(d), 0)
	h.buckets[min(bucket(uint64(n)), len(h.buckets)-1)].Add(1)
	h.count.Add(1)
	for {
		most := h.max.Load()
		if n <= most || h.max.CompareAndSwap(most, n) {
			return
		}
	}
}

// bucket returns where n is counted: one by one up to 2^fineBits, then 2^fineBits
// buckets for each doubling.
func bucket(n uint64) int {
	shift := max(bits.Len64(n)-fineBits-1, 0)
	return shift<<fineBits + int(n>>shift)
}

// middle returns the value in the middle of a bucket.
func middle(i int) float64 {
	shift := max(i>>fineBits-1, 0)
	base := uint64(i-shift<<fineBits) << shift
	return float64(base) + float64(uint64(1)<<shift-1)/2
}

// Count returns how many durations were added.
func (h *Histogram) Count() int64 { return h.count.Load() }

// Max returns the longest, exactly.
func (h *Histogram) Max() time.Duration { return time.Duration(h.max.Load()) }

// Quantile returns the duration that the share q of all does not exceed, 0 when
// none was added.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := max(int64(math.Ceil(q*float64(h.Count()))), 1)
	var seen int64
	for i := range h.buckets {
		seen += int64(h.buckets[i].Load())
		if seen >= rank {
			return min(time.Duration(middle(i)), h.Max())
		}
	}
	return h.Max()
}

// Reset empties it. What is added meanwhile may be counted in part.
func (h *Histogram) Reset() {
	for i := range h.buckets {
		h.buckets[i].Store(0)
	}
	h.count.Store(0)
	h.max.Store(0)
}
