package otelredlatch

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/metric"
)

// together is how many measurements are recorded one after the other: code that runs once in a while
// is not in the processor's cache, and costs several times as much.
const together = 64

// measurement is a duration that is yet to be recorded.
type measurement struct {
	to      metric.Float64Histogram
	seconds float64
	labels  labels
}

// pending has the measurements that are yet to be recorded. They are recorded with mu held: so a
// collection, which flushes, has all that was measured before it.
type pending struct {
	mu     sync.Mutex
	all    []measurement // fewer than together
	closed bool          // nothing flushes any more
}

// record passes a duration to the meter: that of a call that is traced at once, with its context for
// an exemplar, and others together, at the latest when the metrics are collected.
func (t *Telemetry) record(ctx context.Context, traced bool, m measurement) {
	if traced {
		m.to.Record(ctx, m.seconds, t.attributes(m.labels).record...)
		return
	}
	t.pending.mu.Lock()
	defer t.pending.mu.Unlock()
	if t.pending.all = append(t.pending.all, m); len(t.pending.all) >= together || t.pending.closed {
		t.recordAll()
	}
}

// flush records what is left.
func (t *Telemetry) flush() {
	t.pending.mu.Lock()
	defer t.pending.mu.Unlock()
	t.recordAll()
}

// recordAll empties pending, its mu held.
func (t *Telemetry) recordAll() {
	all := t.pending.all
	t.pending.all = all[:0]
	for i := range all {
		m := &all[i]
		m.to.Record(context.Background(), m.seconds, t.attributes(m.labels).record...)
	}
}
