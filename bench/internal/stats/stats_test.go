package stats_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/bench/internal/stats"
)

func TestQuantilesInterpolateAndSkipMissing(t *testing.T) {
	t.Parallel()
	values := []float64{40, math.NaN(), 10, 30, 20}
	assert.InDelta(t, 25.0, stats.Median(values), 1e-9)
	assert.InDelta(t, 10.0, stats.Quantile(values, 0), 1e-9)
	assert.InDelta(t, 40.0, stats.Quantile(values, 1), 1e-9)
	assert.InDelta(t, 17.5, stats.Quantile(values, 0.25), 1e-9)
	assert.Equal(t, stats.Summary{Median: 25, Min: 10, Max: 40, Rounds: 4}, stats.Summarize(values))
	assert.Equal(t, []float64{40, 10, 30, 20}, []float64{values[0], values[2], values[3], values[4]},
		"the caller's values were sorted")
	assert.True(t, math.IsNaN(stats.Median(nil)))
}

func TestPairedRatiosCompareEachRound(t *testing.T) {
	t.Parallel()
	// A round at half speed does not change the ratio.
	a := []float64{200, 100, 202, 101, 198}
	b := []float64{100, 50, 101, 50.5, 99}
	r := stats.Paired(a, b)
	assert.InDelta(t, 2, r.Median, 1e-9)
	assert.InDelta(t, 2, r.Low, 1e-9)
	assert.InDelta(t, 2, r.High, 1e-9)
	assert.Equal(t, 5, r.Rounds)
	assert.True(t, r.Moved())
	assert.Equal(t, 1, stats.Paired([]float64{1, 2, 3}, []float64{1, 0, math.NaN()}).Rounds)
}

func TestChangeRequiresRatioOutsideInterval(t *testing.T) {
	t.Parallel()
	same := stats.Paired([]float64{9, 11, 10, 12, 8}, []float64{10, 10, 10, 10, 10})
	assert.False(t, same.Moved(), same)
	slower := stats.Paired([]float64{8, 8.1, 7.9, 8.2, 8}, []float64{10, 10, 10, 10, 10})
	assert.True(t, slower.Moved(), slower)
	hardly := stats.Paired([]float64{10.05, 10.05, 10.05, 10.05, 10.05}, []float64{10, 10, 10, 10, 10})
	assert.False(t, hardly.Moved(), hardly)
	assert.False(t, stats.Paired([]float64{8, 8, 8}, []float64{10, 10, 10}).Moved(), "three rounds tell nothing")
}

// The interval of a normal sample's mean is 1.96 standard errors.
func TestBootstrapMatchesTheoreticalInterval(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 7))
	values := make([]float64, 400)
	var sum, squares float64
	for i := range values {
		values[i] = 50 + 10*random.NormFloat64()
		sum += values[i]
	}
	mean := sum / float64(len(values))
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	half := 1.96 * math.Sqrt(squares/float64(len(values))) / math.Sqrt(float64(len(values)))
	low, high := stats.Bootstrap(values, func(v []float64) float64 {
		var sum float64
		for _, x := range v {
			sum += x
		}
		return sum / float64(len(v))
	})
	assert.InDelta(t, mean-half, low, half/8)
	assert.InDelta(t, mean+half, high, half/8)
	again, _ := stats.Bootstrap(values, stats.Median)
	once, _ := stats.Bootstrap(values, stats.Median)
	assert.InDelta(t, once, again, 0, "two runs on the same figures differ")
}

func TestHistogramErrorIsWithinBucket(t *testing.T) {
	t.Parallel()
	var h stats.Histogram
	for i := 1; i <= 100_000; i++ {
		h.Add(time.Duration(i) * time.Microsecond)
	}
	require.Equal(t, int64(100_000), h.Count())
	for _, q := range []float64{0.001, 0.01, 0.5, 0.9, 0.99} {
		exact := q * 100_000 * float64(time.Microsecond)
		assert.InDelta(t, exact, float64(h.Quantile(q)), exact*0.005, "quantile %v", q)
	}
	assert.Equal(t, 100*time.Millisecond, h.Max())
	assert.Equal(t, h.Max(), h.Quantile(1))
	assert.Zero(t, new(stats.Histogram).Quantile(0.5))
}

func TestHistogramAcceptsAnyDuration(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{-1, 0, 1, 255, 256, 257, 511, 512, 513, time.Second, time.Hour} {
		var h stats.Histogram
		h.Add(d)
		assert.InDelta(t, float64(max(d, 0)), float64(h.Quantile(0.5)), float64(max(d, 0))*0.004, "%v", d)
	}
	var h stats.Histogram
	h.Add(math.MaxInt64)
	assert.Equal(t, time.Duration(math.MaxInt64), h.Max())
}
