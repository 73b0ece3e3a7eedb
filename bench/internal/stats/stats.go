// Package stats has the few statistics that the benchmark needs: medians, paired
// ratios and how sure they are.
package stats

import (
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// resamples is how often the bootstrap draws.
	resamples = 2000
	// coverage is the probability that an interval is to cover.
	coverage = 0.95
	// leastMove is how far from 1 a ratio must be to be reported.
	leastMove = 0.01
)

// Summary is what a table says about the rounds of one figure.
type Summary struct {
	// Median, Min and Max are those of the rounds.
	Median, Min, Max float64
	// Rounds is how many there were.
	Rounds int
}

// Summarize returns the summary of values, NaNs left out. Without values all
// figures are NaN.
func Summarize(values []float64) Summary {
	v := sorted(values)
	if len(v) == 0 {
		return Summary{Median: math.NaN(), Min: math.NaN(), Max: math.NaN()}
	}
	return Summary{Median: ofSorted(v, 0.5), Min: v[0], Max: v[len(v)-1], Rounds: len(v)}
}

// Median returns the middle of values, NaNs left out; NaN without values.
func Median(values []float64) float64 { return Quantile(values, 0.5) }

// Quantile returns the value below which the share q of values lies, interpolated
// between neighbours, NaNs left out; NaN without values.
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

// Ratio is how one contestant compares with another over the rounds of a run.
type Ratio struct {
	// Median is the median of the ratios of each round.
	Median float64
	// Low and High are the ends of its 95 % interval.
	Low, High float64
	// Rounds is how many rounds had both.
	Rounds int
}

// Moved reports whether the interval leaves 1 out, the two differing by more than the
// rounds do among themselves, and by one percent at least: counts that vary by less mean
// nothing. Fewer than four rounds are never enough.
func (r Ratio) Moved() bool {
	return r.Rounds >= 4 && (r.Low > 1 || r.High < 1) && math.Abs(r.Median-1) >= leastMove
}

// Paired compares the rounds of a with those of b, pair by pair: what disturbed a
// round disturbed both. Rounds in which either is NaN or b is 0 are left out.
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

// Bootstrap returns the 95 % interval of a statistic of values: the middle of what
// it is for samples drawn from them with replacement. Draws are the same in every
// run, so that tables made from the same figures are the same. It returns NaNs
// without values.
func Bootstrap(values []float64, statistic func([]float64) float64) (low, high float64) {
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // draws, not secrets
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
