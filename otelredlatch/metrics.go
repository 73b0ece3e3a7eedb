package otelredlatch

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/redlatch/redlatch"
)

// buckets reach from a pair on a fast network to a wait of minutes, in seconds.
var buckets = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
	0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300,
}

// instruments are what metrics are reported with.
type instruments struct {
	acquire, hold, renewal, slack   metric.Float64Histogram
	lost, evicted, reconnects, gaps metric.Int64Counter
	held, waiting                   metric.Int64ObservableUpDownCounter
	oldest                          metric.Float64ObservableGauge

	sets    cache[labels, *options] // of which there are few
	pending pending
}

// make makes the instruments, and registers what is asked for at each collection.
func (o *Observer) make(m metric.Meter) error {
	in := &o.instruments
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
	histogram(&in.acquire, "lock.acquire.duration", "From the call of Lock, TryLock, Resume, Acquire or TryAcquire to its return.")
	histogram(&in.hold, "lock.hold.duration", "How long a hold lasted.")
	histogram(&in.renewal, "renewal.duration", "From the sending of a renewal to its reply.")
	histogram(&in.slack, "renewal.slack", "How much time was left before a hold would have been lost when its renewal was confirmed.")
	counter(&in.lost, "lock.lost", "{hold}", "Holds that were lost.")
	counter(&in.evicted, "waiter.evicted", "{waiter}", "Dead waiters that were taken out of queues.")
	counter(&in.reconnects, "connection.reconnects", "{reconnect}", "Connections made in place of lost ones.")
	counter(&in.gaps, "subscription.gaps", "{gap}", "Waiters for whom messages may have been missed.")
	return errors.Join(append(failed, o.makeGauges(m))...)
}

func (o *Observer) makeGauges(m metric.Meter) error {
	var failed [4]error
	o.held, failed[0] = m.Int64ObservableUpDownCounter("redlatch.lock.held",
		metric.WithUnit("{hold}"), metric.WithDescription("Holds at this moment."))
	o.waiting, failed[1] = m.Int64ObservableUpDownCounter("redlatch.lock.waiting",
		metric.WithUnit("{call}"), metric.WithDescription("Calls that wait at this moment."))
	o.oldest, failed[2] = m.Float64ObservableGauge("redlatch.lock.hold.oldest_age",
		metric.WithUnit("s"), metric.WithDescription("How long the oldest hold has lasted."))
	if err := errors.Join(failed[:]...); err != nil {
		return err
	}
	o.registered, failed[3] = m.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		o.flush()
		for s, n := range o.now() {
			set := o.attributes(s.labels()).now
			to.ObserveInt64(o.held, int64(n.Held), set...)
			to.ObserveInt64(o.waiting, int64(n.Waiting), set...)
			to.ObserveFloat64(o.oldest, n.OldestHold.Seconds(), set...)
		}
		return nil
	}, o.held, o.waiting, o.oldest)
	return failed[3]
}

// labels are the attributes of one series; what is "" is none.
type labels struct{ kind, group, operation, outcome, end, reason, errorType string }

// options are the attributes of one series, as instruments take them.
type options struct {
	record []metric.RecordOption
	add    []metric.AddOption
	now    []metric.ObserveOption
}

// attributes returns the attributes, made once.
func (o *Observer) attributes(l labels) *options {
	if known := o.sets.all()[l]; known != nil {
		return known
	}
	return o.sets.add(l, l.options)
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

// of returns the labels that all metrics about a lock have.
func (o *Observer) of(name, kind string) labels {
	l := labels{kind: kind}
	if o.set.grouping != nil {
		l.group = o.groupOf(name)
	}
	return l
}

func (o *Observer) groupOf(name string) string { return o.groups.of(o.set.grouping(name)) }

// measure takes an event in that a metric counts. A measurement of a call that is traced has ctx for
// an exemplar.
func (o *Observer) measure(ctx context.Context, traced bool, event redlatch.Event) {
	switch e := event.(type) {
	case redlatch.Acquired:
		l := o.of(e.Name, e.Kind)
		l.operation, l.outcome = e.Op, "acquired"
		o.record(ctx, traced, measurement{o.acquire, e.Wait.Seconds(), l})
	case redlatch.NotAcquired:
		l := o.of(e.Name, e.Kind)
		l.operation, l.outcome = e.Op, e.Outcome()
		if l.outcome == failed {
			l.errorType = redlatch.ErrorType(e.Err)
		}
		o.record(ctx, traced, measurement{o.acquire, e.Wait.Seconds(), l})
	case redlatch.Ended:
		l := o.of(e.Name, e.Kind)
		l.end = e.End()
		o.record(ctx, traced, measurement{o.hold, e.Held.Seconds(), l})
		if reason := e.LossReason(); reason != "" {
			l.end, l.reason = "", reason
			o.lost.Add(ctx, 1, o.attributes(l).add...)
		}
	case redlatch.Gap:
		o.gaps.Add(ctx, 1, o.attributes(o.of(e.Name, e.Kind)).add...)
	case redlatch.Renewed:
		o.renewal.Record(ctx, e.Took.Seconds(), o.attributes(labels{errorType: redlatch.ErrorType(e.Err)}).record...)
		if e.Err == nil && e.Lost < e.Holds {
			o.slack.Record(ctx, e.Slack.Seconds())
		}
	case redlatch.Evicted:
		o.evicted.Add(ctx, 1, o.attributes(o.of(e.Name, e.Kind)).add...)
	case redlatch.Reconnected:
		o.reconnects.Add(ctx, 1)
	}
}

// failed is the outcome of a call that has an error.
const failed = "failed"

// series are the kind and the group of what is asked for at each collection.
type series struct{ kind, group string }

func (s series) labels() labels { return labels{kind: s.kind, group: s.group} }

// see remembers that there are locks of a kind and group: from then on their gauges are there,
// also while they are 0. So are the counters of what goes wrong: the increase from nothing to 1
// is none for Prometheus, that from 0 is one.
func (o *Observer) see(ctx context.Context, s series) {
	if _, known := o.seen.all()[s]; known {
		return
	}
	l := s.labels()
	o.evicted.Add(ctx, 0, o.attributes(l).add...)
	o.gaps.Add(ctx, 0, o.attributes(l).add...)
	for _, reason := range []string{"late", "gone"} {
		l.reason = reason
		o.lost.Add(ctx, 0, o.attributes(l).add...)
	}
	o.seen.add(s, func() struct{} { return struct{}{} })
}

// watch takes in that a client has begun or ended.
func (o *Observer) watch(event redlatch.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch e := event.(type) {
	case redlatch.Opened:
		o.clients[e.Client] = struct{}{}
	case redlatch.Closed:
		delete(o.clients, e.Client)
	}
}

// now returns the counts of all clients.
func (o *Observer) now() map[series]redlatch.KindStats {
	o.mu.Lock()
	clients := make([]*redlatch.Client, 0, len(o.clients))
	for c := range o.clients {
		clients = append(clients, c)
	}
	o.mu.Unlock()
	all := map[series]redlatch.KindStats{}
	for s := range o.seen.all() {
		all[s] = redlatch.KindStats{}
	}
	var group func(string) string
	if o.set.grouping != nil {
		group = o.groupOf
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
