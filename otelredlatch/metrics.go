package otelredlatch

import (
	"context"
	"errors"
	"maps"
	"math"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/redlatch/redlatch"
)

// buckets are in seconds, and range from uncontended locks on a fast network to waits of several
// minutes.
var buckets = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
	0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300,
}

type instruments struct {
	acquire, hold, renewal, slack     metric.Float64Histogram
	lost, evictions, reconnects, gaps metric.Int64Counter
	held, waiting                     metric.Int64ObservableUpDownCounter
	oldest                            metric.Float64ObservableGauge

	sets    cache[labels, *options]
	pending pending
}

func (t *Telemetry) make(m metric.Meter) error {
	in := &t.instruments
	var failed []error
	histogram := func(to *metric.Float64Histogram, name, about string) {
		var err error
		*to, err = m.Float64Histogram("redlatch."+name, metric.WithUnit("s"), metric.WithDescription(about),
			metric.WithExplicitBucketBoundaries(buckets...))
		failed = append(failed, err)
	}
	counter := func(to *metric.Int64Counter, name, unit, about string) {
		var err error
		*to, err = m.Int64Counter("redlatch."+name, metric.WithUnit(unit), metric.WithDescription(about))
		failed = append(failed, err)
	}
	histogram(&in.acquire, "lock.acquire.duration", "Duration of Lock, TryLock, Resume, Acquire and TryAcquire calls.")
	histogram(&in.hold, "lock.hold.duration", "Duration of holds.")
	histogram(&in.renewal, "renewal.duration", "Round-trip time of lease renewals.")
	histogram(&in.slack, "renewal.slack", "Time left before loss of the hold when its renewal was confirmed.")
	counter(&in.lost, "lock.lost", "{hold}", "Lost holds.")
	counter(&in.evictions, "waiter.evicted", "{waiter}", "Dead waiters evicted from queues.")
	counter(&in.reconnects, "connection.reconnects", "{reconnect}", "Reconnects after a lost connection.")
	counter(&in.gaps, "subscription.gaps", "{gap}", "Waiters woken because messages may have been missed.")
	return errors.Join(append(failed, t.makeGauges(m))...)
}

func (t *Telemetry) makeGauges(m metric.Meter) error {
	var failed [4]error
	t.held, failed[0] = m.Int64ObservableUpDownCounter("redlatch.lock.held",
		metric.WithUnit("{hold}"), metric.WithDescription("Current holds."))
	t.waiting, failed[1] = m.Int64ObservableUpDownCounter("redlatch.lock.waiting",
		metric.WithUnit("{call}"), metric.WithDescription("Calls currently waiting."))
	t.oldest, failed[2] = m.Float64ObservableGauge("redlatch.lock.hold.oldest_age",
		metric.WithUnit("s"), metric.WithDescription("Age of the oldest hold."))
	if err := errors.Join(failed[:]...); err != nil {
		return err
	}
	t.registered, failed[3] = m.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		t.flush()
		for s, n := range t.now() {
			set := t.attributes(s.labels()).now
			to.ObserveInt64(t.held, int64(n.Held), set...)
			to.ObserveInt64(t.waiting, int64(n.Waiting), set...)
			to.ObserveFloat64(t.oldest, n.OldestHold.Seconds(), set...)
		}
		return nil
	}, t.held, t.waiting, t.oldest)
	return failed[3]
}

// Empty labels are omitted.
type labels struct{ kind, group, operation, outcome, end, reason, errorType string }

type options struct {
	record []metric.RecordOption
	add    []metric.AddOption
	now    []metric.ObserveOption
}

func (t *Telemetry) attributes(l labels) *options {
	if known := t.sets.all()[l]; known != nil {
		return known
	}
	return t.sets.add(l, l.options)
}

func (l labels) options() *options {
	var all []attribute.KeyValue
	for _, a := range []attribute.KeyValue{
		attribute.String("kind", l.kind), attribute.String("group", l.group),
		attribute.String("operation", l.operation), attribute.String("outcome", l.outcome),
		attribute.String("end", l.end), attribute.String("reason", l.reason), attribute.String("error.type", l.errorType),
	} {
		if a.Value.AsString() != "" {
			all = append(all, a)
		}
	}
	set := metric.WithAttributeSet(attribute.NewSet(all...))
	return &options{[]metric.RecordOption{set}, []metric.AddOption{set}, []metric.ObserveOption{set}}
}

func (t *Telemetry) of(name, kind string) labels {
	l := labels{kind: kind}
	if t.set.grouping != nil {
		l.group = t.groupOf(name)
	}
	return l
}

// groupOf counts groups that are not valid UTF-8 as otherGroup.
func (t *Telemetry) groupOf(name string) string {
	group := t.set.grouping(name)
	if _, known := t.groups.all()[group]; known {
		return group
	}
	if len(t.groups.all()) >= maxGroups || !utf8.ValidString(group) {
		return otherGroup
	}
	if _, ok := t.groups.addUpTo(maxGroups, group, func() (none struct{}) { return none }); !ok {
		return otherGroup
	}
	return group
}

const failed = "failed"

type series struct{ kind, group string }

func (s series) labels() labels { return labels{kind: s.kind, group: s.group} }

// see adds 0 to each counter, because Prometheus misses the increase of a counter that starts at 1.
func (t *Telemetry) see(ctx context.Context, s series) {
	if _, known := t.seen.all()[s]; known {
		return
	}
	l := s.labels()
	t.evictions.Add(ctx, 0, t.attributes(l).add...)
	t.gaps.Add(ctx, 0, t.attributes(l).add...)
	for _, reason := range []string{"late", "gone"} {
		l.reason = reason
		t.lost.Add(ctx, 0, t.attributes(l).add...)
	}
	t.seen.add(s, func() struct{} { return struct{}{} })
}

func (t *Telemetry) now() map[series]redlatch.KindStats {
	t.mu.Lock()
	clients := make([]*redlatch.Client, 0, len(t.clients))
	for c := range t.clients {
		clients = append(clients, c)
	}
	t.mu.Unlock()
	all := map[series]redlatch.KindStats{}
	for s := range t.seen.all() {
		all[s] = redlatch.KindStats{}
	}
	var group func(string) string
	if t.set.grouping != nil {
		group = t.groupOf
	}
	for _, c := range clients {
		for _, n := range c.StatsBy(group) {
			s := series{n.Kind, n.Group}
			sum := all[s]
			sum.Held += n.Held
			sum.Waiting += n.Waiting
			sum.OldestHold = max(sum.OldestHold, n.OldestHold)
			all[s] = sum
		}
	}
	return all
}

// cache is a copy-on-write map. Reading it neither locks nor allocates.
type cache[K comparable, V any] struct {
	mu   sync.Mutex // held while adding
	have atomic.Pointer[map[K]V]
}

func (c *cache[K, V]) all() map[K]V {
	if have := c.have.Load(); have != nil {
		return *have
	}
	return nil
}

func (c *cache[K, V]) add(key K, make func() V) V {
	v, _ := c.addUpTo(math.MaxInt, key, make)
	return v
}

func (c *cache[K, V]) addUpTo(most int, key K, make func() V) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, known := c.all()[key]; known {
		return v, true
	}
	if len(c.all()) >= most {
		return v, false
	}
	next := maps.Clone(c.all())
	if next == nil {
		next = map[K]V{}
	}
	next[key] = make()
	c.have.Store(&next)
	return next[key], true
}

// together is the batch size. Batches keep the code in the processor's cache, which is several
// times faster.
const together = 64

type measurement struct {
	to      metric.Float64Histogram
	seconds float64
	labels  labels
}

// A collection flushes pending, so that it includes all earlier measurements. Measurements are
// recorded with mu held.
type pending struct {
	mu     sync.Mutex
	all    []measurement // always fewer than together
	closed bool          // set by Close; measurements are then recorded immediately
}

// record records traced calls immediately, because an exemplar needs their context.
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

func (t *Telemetry) flush() {
	t.pending.mu.Lock()
	defer t.pending.mu.Unlock()
	t.recordAll()
}

// recordAll is like flush, but is called with pending.mu held.
func (t *Telemetry) recordAll() {
	all := t.pending.all
	t.pending.all = all[:0]
	for i := range all {
		m := &all[i]
		m.to.Record(context.Background(), m.seconds, t.attributes(m.labels).record...)
	}
}
