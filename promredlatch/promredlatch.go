package promredlatch

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlatch/redlatch"
)

// If [WithGroup] returns more than maxGroups groups, names in other groups count as otherGroup.
const (
	maxGroups  = 100
	otherGroup = "_other"
)

// buckets are in seconds, and range from uncontended locks on a fast network to waits of several minutes.
var buckets = []float64{
	0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05,
	0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300,
}

// Option configures [New].
type Option func(*Metrics)

// WithGroup adds a "group" label to the metrics that have a "kind" label. group returns its value
// for a lock's name. It is called in each call to Lock, and must be fast and safe for concurrent
// use. Once there are 100 groups, names in any other group count as "_other". By default, no label
// is added.
func WithGroup(group func(name string) string) Option {
	return func(m *Metrics) { m.grouping = group }
}

// WithExemplars adds exemplars to the histograms of locks. exemplar returns the labels for the
// caller's context, or nil to add none. Labels with more than 128 characters in total, or with
// invalid names or values, are dropped. By default, no exemplars are added.
func WithExemplars(exemplar func(ctx context.Context) prometheus.Labels) Option {
	return func(m *Metrics) { m.exemplar = exemplar }
}

// Metrics is a prometheus.Collector for clients that use its Observer. All methods are safe for concurrent
// use.
type Metrics struct {
	grouping func(name string) string
	exemplar func(ctx context.Context) prometheus.Labels
	groups   cache[string, struct{}]

	acquire, hold         *prometheus.HistogramVec
	renewal               *prometheus.HistogramVec
	slack                 prometheus.Histogram
	lost, evictions, gaps *prometheus.CounterVec
	reconnects            prometheus.Counter
	held, waiting, oldest *prometheus.Desc

	acquires cache[acquireKey, prometheus.Observer]
	holds    cache[holdKey, prometheus.Observer]

	mu      sync.Mutex // guards clients
	clients map[*redlatch.Client]struct{}
	seen    cache[series, struct{}]
	pending pending
}

var _ prometheus.Collector = (*Metrics)(nil)

// New returns metrics with zero values.
func New(opts ...Option) *Metrics {
	m := &Metrics{clients: map[*redlatch.Client]struct{}{}}
	for _, o := range opts {
		if o != nil {
			o(m)
		}
	}
	m.acquire = m.histogram("lock_acquire_duration_seconds",
		"Duration of Lock, TryLock, Resume, Acquire and TryAcquire calls.", m.labels("operation", "outcome", "error_type"))
	m.hold = m.histogram("lock_hold_duration_seconds", "Duration of holds.", m.labels("end"))
	m.renewal = m.histogram("renewal_duration_seconds", "Round-trip time of lease renewals.", []string{"error_type"})
	m.slack = prometheus.NewHistogram(prometheus.HistogramOpts{
		Name: "redlatch_renewal_slack_seconds", Buckets: buckets,
		Help: "Time left before loss of the hold when its renewal was confirmed.",
	})
	m.lost = m.counter("lock_lost_total", "Lost holds.", m.labels("reason"))
	m.evictions = m.counter("waiter_evicted_total", "Dead waiters evicted from queues.", m.labels())
	m.gaps = m.counter("subscription_gaps_total", "Waiters woken because messages may have been missed.", m.labels())
	m.reconnects = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "redlatch_connection_reconnects_total", Help: "Reconnects after a lost connection.",
	})
	m.held = m.gauge("lock_held", "Current holds.")
	m.waiting = m.gauge("lock_waiting", "Calls currently waiting.")
	m.oldest = m.gauge("lock_hold_oldest_age_seconds", "Age of the oldest hold.")
	return m
}

func (m *Metrics) labels(others ...string) []string {
	all := []string{"kind"}
	if m.grouping != nil {
		all = append(all, "group")
	}
	return append(all, others...)
}

func (*Metrics) histogram(name, help string, labels []string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "redlatch_" + name, Help: help, Buckets: buckets}, labels)
}

func (*Metrics) counter(name, help string, labels []string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "redlatch_" + name, Help: help}, labels)
}

func (m *Metrics) gauge(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("redlatch_"+name, help, m.labels(), nil)
}
