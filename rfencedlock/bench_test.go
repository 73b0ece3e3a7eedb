package rfencedlock_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
)

// A pair of lock and unlock with a token is to cost at most 1.15 times one without.
func BenchmarkPair(b *testing.B) {
	s := redistest.Shared(b)
	client, err := redlatch.Open(b.Context(), s.URL())
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, client.Close()) })
	plain, fenced := rlock.New(client, redistest.Key(b)), rfencedlock.New(client, redistest.Key(b))
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			require.NoError(b, plain.Do(b.Context(), func(context.Context) error { return nil }))
		}
	})
	b.Run("fenced", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			require.NoError(b, fenced.Do(b.Context(), func(context.Context, *rfencedlock.Hold) error { return nil }))
		}
	})
}
