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

// pending has the measurements that are yet to be recorded. Those that are taken out are recorded by
// the goroutine that takes them, without mu.
type pending struct {
	mu     sync.Mutex
	all    []measurement // fewer than together
	spare  []measurement // for those that come while all are recorded; nil: none
	closed bool          // nothing asks for them any more
}

// add returns what is to be recorded now, if anything is.
func (p *pending) add(m measurement) []measurement {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all = append(p.all, m); len(p.all) < together && !p.closed {
		return nil
	}
	return p.take()
}

// rest returns all that is to be recorded. After the last time nothing is kept.
func (p *pending) rest(last bool) []measurement {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = p.closed || last
	return p.take()
}

// take empties it, mu held.
func (p *pending) take() []measurement {
	if len(p.all) == 0 {
		return nil
	}
	taken := p.all
	if p.all, p.spare = p.spare, nil; p.all == nil {
		p.all = make([]measurement, 0, together)
	}
	return taken
}

// reuse takes back what has been recorded.
func (p *pending) reuse(taken []measurement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spare = taken[:0]
}

// record passes a duration to the meter: that of a call that is traced at once, with its context for
// an exemplar, and others together, at the latest when the metrics are collected.
func (o *Observer) record(ctx context.Context, traced bool, m measurement) {
	if traced {
		m.to.Record(ctx, m.seconds, o.attributes(m.labels).record...)
		return
	}
	o.recordAll(o.pending.add(m))
}

func (o *Observer) recordAll(all []measurement) {
	if len(all) == 0 {
		return
	}
	for i := range all {
		m := &all[i]
		m.to.Record(context.Background(), m.seconds, o.attributes(m.labels).record...)
	}
	o.pending.reuse(all)
}
