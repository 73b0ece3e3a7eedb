package rfencedlock_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
)

// Locking and unlocking with a token should take at most 1.15 times as long as without one.
func BenchmarkPair(b *testing.B) {
	s := redistest.Shared(b)
	client, err := redlatch.Open(b.Context(), s.URL())
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, client.Close()) })
	plain, fenced := rlock.New(client, redistest.Key(b)), rfencedlock.New(client, redistest.Key(b))
	pairs := map[string]func() error{
		"plain": func() error { return plain.Do(b.Context(), func(context.Context) error { return nil }) },
		"fenced": func() error {
			return fenced.Do(b.Context(), func(context.Context, *rfencedlock.Hold) error { return nil })
		},
	}
	// The runs alternate, so that a busy machine slows both. The median limits the effect of outliers.
	took := map[string][]time.Duration{}
	for b.Loop() {
		for name, pair := range pairs {
			began := time.Now()
			require.NoError(b, pair())
			took[name] = append(took[name], time.Since(began))
		}
	}
	median := func(name string) float64 {
		slices.Sort(took[name])
		return float64(took[name][len(took[name])/2])
	}
	b.ReportMetric(median("plain"), "ns/plain")
	b.ReportMetric(median("fenced"), "ns/fenced")
	b.ReportMetric(median("fenced")/median("plain"), "fenced/plain")
}
