package promredlatch

import (
	"context"
	"maps"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlatch/redlatch"
)

// Observer returns the observer for redlatch.WithObserver. Several clients may share it.
func (m *Metrics) Observer() redlatch.Observer {
	return redlatch.Observer{
		Opened: m.opened, Closed: m.closed,
		Started: m.started, Acquired: m.acquired, NotAcquired: m.notAcquired, Woken: m.woken,
		Ended: m.ended, Renewed: m.renewed, Evicted: m.evicted, Reconnected: m.reconnected,
	}
}

func (m *Metrics) opened(c *redlatch.Client) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clients[c] = struct{}{}
}

func (m *Metrics) closed(c *redlatch.Client) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.clients, c)
}

func (m *Metrics) started(ctx context.Context, e redlatch.Started) context.Context {
	m.see(e.Name, e.Kind)
	return ctx
}

func (m *Metrics) acquired(ctx context.Context, e redlatch.Acquired) context.Context {
	m.addAcquisition(ctx, e.Wait, acquireKey{m.series(e.Name, e.Kind), e.Op, "acquired", ""})
	return ctx
}

func (m *Metrics) notAcquired(ctx context.Context, e redlatch.NotAcquired) {
	outcome, kind := e.Outcome, ""
	if outcome == "failed" {
		kind = redlatch.ErrorType(e.Err)
	}
	m.addAcquisition(ctx, e.Wait, acquireKey{m.series(e.Name, e.Kind), e.Op, outcome, kind})
}

func (m *Metrics) woken(_ context.Context, e redlatch.Woken) {
	if e.By == "gap" {
		m.gaps.WithLabelValues(m.values(e.Name, e.Kind)...).Inc()
	}
}

func (m *Metrics) ended(ctx context.Context, e redlatch.Ended) {
	m.addHold(ctx, e.Held, holdKey{m.series(e.Name, e.Kind), e.End})
	if reason := e.LossReason; reason != "" {
		m.lost.WithLabelValues(m.values(e.Name, e.Kind, reason)...).Inc()
	}
}

func (m *Metrics) renewed(e redlatch.Renewed) {
	m.renewal.WithLabelValues(redlatch.ErrorType(e.Err)).Observe(e.Took.Seconds())
	if e.Err == nil && e.Lost < e.Holds {
		m.slack.Observe(e.Slack.Seconds())
	}
}

func (m *Metrics) evicted(e redlatch.Evicted) {
	m.evictions.WithLabelValues(m.values(e.Name, e.Kind)...).Inc()
}

func (m *Metrics) reconnected(redlatch.Reconnected) { m.reconnects.Inc() }

func (m *Metrics) addAcquisition(ctx context.Context, d time.Duration, k acquireKey) {
	to, known := m.acquires.all()[k]
	if !known {
		to = m.acquires.add(k, func() prometheus.Observer {
			return m.acquire.WithLabelValues(append(m.first(k.series), k.operation, k.outcome, k.errorType)...)
		})
	}
	m.observe(ctx, d, to)
}

func (m *Metrics) addHold(ctx context.Context, d time.Duration, k holdKey) {
	to, known := m.holds.all()[k]
	if !known {
		to = m.holds.add(k, func() prometheus.Observer {
			return m.hold.WithLabelValues(append(m.first(k.series), k.end)...)
		})
	}
	m.observe(ctx, d, to)
}

func (m *Metrics) first(s series) []string {
	if m.grouping != nil {
		return []string{s.kind, s.group}
	}
	return []string{s.kind}
}

func (m *Metrics) values(name, kind string, others ...string) []string {
	return append(m.first(m.series(name, kind)), others...)
}

// groupOf counts groups that are not valid UTF-8 as otherGroup.
func (m *Metrics) groupOf(name string) string {
	group := m.grouping(name)
	if _, known := m.groups.all()[group]; known {
		return group
	}
	if len(m.groups.all()) >= maxGroups || !utf8.ValidString(group) {
		return otherGroup
	}
	if _, ok := m.groups.addUpTo(maxGroups, group, func() (none struct{}) { return none }); !ok {
		return otherGroup
	}
	return group
}

func (m *Metrics) observe(ctx context.Context, d time.Duration, to prometheus.Observer) {
	if m.exemplar != nil {
		if labels := m.exemplar(ctx); labels != nil && fits(labels) {
			if with, can := to.(prometheus.ExemplarObserver); can {
				with.ObserveWithExemplar(d.Seconds(), labels)
				return
			}
		}
	}
	m.pending.add(measurement{to, d.Seconds()})
}

// fits reports whether labels are valid for an exemplar. Prometheus panics if they are not.
func fits(labels prometheus.Labels) bool {
	n := 0
	for name, value := range labels {
		if name == "" || strings.HasPrefix(name, "__") || !utf8.ValidString(name) || !utf8.ValidString(value) {
			return false
		}
		n += utf8.RuneCountInString(name) + utf8.RuneCountInString(value)
	}
	return n <= prometheus.ExemplarMaxRunes
}

type series struct{ kind, group string }

// see creates each counter at 0, because Prometheus misses the increase of a counter that starts at
// 1.
func (m *Metrics) see(name, kind string) {
	s := m.series(name, kind)
	if _, known := m.seen.all()[s]; !known {
		for _, reason := range []string{"late", "gone"} {
			m.lost.WithLabelValues(m.values(name, kind, reason)...)
		}
		m.evictions.WithLabelValues(m.values(name, kind)...)
		m.gaps.WithLabelValues(m.values(name, kind)...)
		m.seen.add(s, func() struct{} { return struct{}{} })
	}
}

func (m *Metrics) series(name, kind string) series {
	s := series{kind: kind}
	if m.grouping != nil {
		s.group = m.groupOf(name)
	}
	return s
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(out)
	}
	out <- m.held
	out <- m.waiting
	out <- m.oldest
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.pending.flush()
	for _, c := range m.collectors() {
		c.Collect(out)
	}
	for s, n := range m.now() {
		values := m.first(s)
		out <- prometheus.MustNewConstMetric(m.held, prometheus.GaugeValue, float64(n.Held), values...)
		out <- prometheus.MustNewConstMetric(m.waiting, prometheus.GaugeValue, float64(n.Waiting), values...)
		out <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, n.OldestHold.Seconds(), values...)
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.acquire, m.hold, m.renewal, m.slack, m.lost, m.evictions, m.gaps, m.reconnects}
}

func (m *Metrics) now() map[series]redlatch.KindStats {
	m.mu.Lock()
	clients := make([]*redlatch.Client, 0, len(m.clients))
	for c := range m.clients {
		clients = append(clients, c)
	}
	m.mu.Unlock()
	all := map[series]redlatch.KindStats{}
	for s := range m.seen.all() {
		all[s] = redlatch.KindStats{}
	}
	var group func(string) string
	if m.grouping != nil {
		group = m.groupOf
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

type (
	acquireKey struct {
		series
		operation, outcome, errorType string
	}
	holdKey struct {
		series
		end string
	}
)

// together is the batch size. Batches keep the code in the processor's cache, which is several
// times faster.
const together = 64

type measurement struct {
	to      prometheus.Observer
	seconds float64
}

// A collection flushes pending, so that it includes all earlier measurements. Measurements are
// counted with mu held.
type pending struct {
	mu  sync.Mutex
	all []measurement // always fewer than together
}

func (p *pending) add(m measurement) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all = append(p.all, m); len(p.all) >= together {
		p.count()
	}
}

func (p *pending) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count()
}

// count is like flush, but mu must be held.
func (p *pending) count() {
	all := p.all
	p.all = all[:0]
	for _, m := range all {
		m.to.Observe(m.seconds)
	}
}
