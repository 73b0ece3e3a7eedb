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
func (o *Observer) record(ctx context.Context, traced bool, m measurement) {
	if traced {
		m.to.Record(ctx, m.seconds, o.attributes(m.labels).record...)
		return
	}
	o.pending.mu.Lock()
	defer o.pending.mu.Unlock()
	if o.pending.all = append(o.pending.all, m); len(o.pending.all) >= together || o.pending.closed {
		o.recordAll()
	}
}

// flush records what is left.
func (o *Observer) flush() {
	o.pending.mu.Lock()
	defer o.pending.mu.Unlock()
	o.recordAll()
}

// recordAll empties pending, its mu held.
func (o *Observer) recordAll() {
	all := o.pending.all
	o.pending.all = all[:0]
	for i := range all {
		m := &all[i]
		m.to.Record(context.Background(), m.seconds, o.attributes(m.labels).record...)
	}
}
