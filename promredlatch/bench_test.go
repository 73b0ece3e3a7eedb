package promredlatch_test

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/promredlatch"
)

// What the events of an uncontended pair cost.
func BenchmarkPair(b *testing.B) {
	o := promredlatch.New().Observer()
	b.ReportAllocs()
	for b.Loop() {
		ctx := o.Started(b.Context(), redlatch.Started{Op: "lock", Name: "orders:42", Kind: "plain", Locks: 1})
		ctx = o.Acquired(ctx, redlatch.Acquired{Op: "lock", Name: "orders:42", Kind: "plain", Wait: time.Millisecond, Attempts: 1})
		o.Ended(ctx, redlatch.Ended{Name: "orders:42", Kind: "plain", Held: time.Millisecond})
	}
}
