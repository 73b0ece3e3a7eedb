package promredlatch_test

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/promredlatch"
)

// What the events of an uncontended pair cost.
func BenchmarkPair(b *testing.B) {
	m := promredlatch.New()
	all := []redlatch.Event{
		redlatch.Started{Op: "lock", Name: "orders:42", Kind: "plain", Locks: 1},
		redlatch.Acquired{Op: "lock", Name: "orders:42", Kind: "plain", Wait: time.Millisecond, Attempts: 1},
		redlatch.Ended{Name: "orders:42", Kind: "plain", Held: time.Millisecond},
		redlatch.Released{Name: "orders:42", Kind: "plain", Took: time.Millisecond},
	}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		next := ctx
		for _, e := range all {
			next = m.ObserveContext(next, e)
		}
	}
}
