// Package stats implements the statistics for the benchmark. Its functions ignore NaNs, and return
// NaNs if nothing else is left.
package stats

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"time"
)

const (
	resamples = 2000
	coverage  = 0.95
	leastMove = 0.01
)

// Summary summarizes the rounds of one figure.
type Summary struct {
	Median, Min, Max float64
	Rounds           int
}

// Summarize returns the summary of values.
func Summarize(values []float64) Summary {
	v := sorted(values)
	if len(v) == 0 {
		return Summary{Median: math.NaN(), Min: math.NaN(), Max: math.NaN()}
	}
	return Summary{Median: ofSorted(v, 0.5), Min: v[0], Max: v[len(v)-1], Rounds: len(v)}
}

// Median returns the median of values.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Quantile returns the interpolated q-quantile of values.
func Quantile(values []float64, q float64) float64 {
	v := sorted(values)
	if len(v) == 0 {
		return math.NaN()
	}
	return ofSorted(v, q)
}

func sorted(values []float64) []float64 {
	v := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	slices.Sort(v)
	return v
}

func ofSorted(v []float64, q float64) float64 {
	at := q * float64(len(v)-1)
	low := int(at)
	if low+1 >= len(v) {
		return v[len(v)-1]
	}
	return v[low] + (at-float64(low))*(v[low+1]-v[low])
}

// Ratio compares two contestants over the rounds of a run.
type Ratio struct {
	// Median is the median of the ratios of the individual rounds.
	Median float64
	// Low and High are the bounds of the median's 95 % confidence interval.
	Low, High float64
	Rounds    int
}

// Moved reports whether the interval excludes 1 and the median differs from 1 by at least one
// percent, in at least four rounds.
func (r Ratio) Moved() bool {
	return r.Rounds >= 4 && (r.Low > 1 || r.High < 1) && math.Abs(r.Median-1) >= leastMove
}

// Paired compares a with b round by round. It skips rounds in which either is NaN or b is 0.
func Paired(a, b []float64) Ratio {
	var ratios []float64
	for i := range min(len(a), len(b)) {
		if r := a[i] / b[i]; !math.IsNaN(r) && !math.IsInf(r, 0) {
			ratios = append(ratios, r)
		}
	}
	low, high := Bootstrap(ratios, Median)
	return Ratio{Median: Median(ratios), Low: low, High: high, Rounds: len(ratios)}
}

// Bootstrap returns the 95 % confidence interval of a statistic. It is deterministic.
func Bootstrap(values []float64, statistic func([]float64) float64) (low, high float64) {
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // not used for security
	drawn := make([]float64, len(values))
	results := make([]float64, resamples)
	for i := range results {
		for j := range drawn {
			drawn[j] = values[random.IntN(len(values))]
		}
		results[i] = statistic(drawn)
	}
	tail := (1 - coverage) / 2
	return Quantile(results, tail), Quantile(results, 1-tail)
}

const (
	// fineBits determines the width of a bucket, which is 2^-8 (0.4 %) of its value.
	fineBits = 8
	// octaves is large enough for 2^(fineBits+octaves) ns, which is more than an hour.
	octaves = 35
)

// Histogram counts durations in buckets that are 0.4 % wide. Its methods are safe for concurrent use.
type Histogram struct {
	buckets [(octaves + 1) << fineBits]atomic.Uint32
	count   atomic.Int64
	max     atomic.Int64
}

// Add counts d. A negative duration counts as 0.
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

func bucket(n uint64) int {
	shift := max(bits.Len64(n)-fineBits-1, 0)
	return shift<<fineBits + int(n>>shift)
}

func middle(i int) float64 {
	shift := max(i>>fineBits-1, 0)
	base := uint64(i-shift<<fineBits) << shift
	return float64(base) + float64(uint64(1)<<shift-1)/2
}

// Count returns the number of durations.
func (h *Histogram) Count() int64 { return h.count.Load() }

// Max returns the longest duration exactly.
func (h *Histogram) Max() time.Duration { return time.Duration(h.max.Load()) }

// Quantile returns the q-quantile, or 0 if the histogram is empty.
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
