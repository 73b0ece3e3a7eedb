package clock_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/redlatch/redlatch/internal/clock"
)

func TestBackoffDoublesWithinBoundsWithJitter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		b    clock.Backoff
		want []int // in milliseconds
	}{
		{clock.Backoff{}, []int{20, 40, 80, 160, 320, 640, 1000, 1000}},
		{clock.Backoff{Min: 50 * time.Millisecond, Max: 150 * time.Millisecond}, []int{50, 100, 150, 150}},
		{clock.Backoff{Min: 3 * time.Second}, []int{3000, 3000}},
	} {
		for range 2 {
			for i, millis := range c.want {
				want := time.Duration(millis) * time.Millisecond
				got := c.b.Next()
				assert.LessOrEqual(t, got, want)
				assert.GreaterOrEqual(t, got, want/2)
				assert.Equal(t, i+1, c.b.Failures())
			}
			c.b.Reset()
			assert.Zero(t, c.b.Failures())
		}
	}
}

func TestBackoffVaries(t *testing.T) {
	t.Parallel()
	seen := map[time.Duration]bool{}
	for range 100 {
		var b clock.Backoff
		seen[b.Next()] = true
	}
	assert.Greater(t, len(seen), 50, "clients that fail together do not come back together")
}

func TestInvalidBackoffBoundsAreTolerated(t *testing.T) {
	t.Parallel()
	b := clock.Backoff{Min: math.MaxInt64, Max: math.MinInt64}
	for range 5 {
		assert.GreaterOrEqual(t, b.Next(), time.Duration(math.MaxInt64/2))
	}
}

func TestPauseStartsAtFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := clock.Backoff{Min: time.Second, Max: time.Second}
		began := time.Now()
		assert.True(t, b.Wait(t.Context()), "no failure")
		assert.Zero(t, time.Since(began))

		b.Failed()
		time.Sleep(400 * time.Millisecond)
		assert.True(t, b.Wait(t.Context()))
		assert.GreaterOrEqual(t, time.Since(began), 500*time.Millisecond)
		assert.LessOrEqual(t, time.Since(began), time.Second)

		b.Failed()
		time.Sleep(2 * time.Second)
		began = time.Now()
		assert.True(t, b.Wait(t.Context()), "the failure was long ago")
		assert.Zero(t, time.Since(began))
	})
}

func TestPauseEndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := clock.Backoff{Min: time.Hour}
		b.Failed()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		assert.False(t, b.Wait(ctx))
		assert.Equal(t, time.Second, time.Since(began))
		assert.False(t, (&clock.Backoff{}).Wait(ctx), "the context has ended")
	})
}
