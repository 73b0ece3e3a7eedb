package promredlatch

import (
	"context"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/redlatch/redlatch"
)

// Observe is part of redlatch.Observer: what belongs to no caller.
func (m *Metrics) Observe(event redlatch.Event) {
	switch e := event.(type) {
	case redlatch.Renewed:
		m.renewal.WithLabelValues(redlatch.ErrorType(e.Err)).Observe(e.Took.Seconds())
		if e.Err == nil && e.Lost < e.Holds {
			m.slack.Observe(e.Slack.Seconds())
		}
	case redlatch.Evicted:
		m.evicted.WithLabelValues(m.values(e.Name, e.Kind)...).Inc()
	case redlatch.Reconnected:
		m.reconnects.Inc()
	}
}

// ObserveContext is part of redlatch.ContextObserver.
func (m *Metrics) ObserveContext(ctx context.Context, event redlatch.Event) context.Context {
	switch e := event.(type) {
	case redlatch.Opened:
		m.mu.Lock()
		m.clients[e.Client] = struct{}{}
		m.mu.Unlock()
	case redlatch.Closed:
		m.mu.Lock()
		delete(m.clients, e.Client)
		m.mu.Unlock()
	case redlatch.Started:
		m.see(e.Name, e.Kind)
	case redlatch.Acquired:
		m.observe(ctx, m.acquire, e.Wait, m.values(e.Name, e.Kind, e.Op, "acquired", ""))
	case redlatch.NotAcquired:
		outcome, kind := e.Outcome(), ""
		if outcome == "failed" {
			kind = redlatch.ErrorType(e.Err)
		}
		m.observe(ctx, m.acquire, e.Wait, m.values(e.Name, e.Kind, e.Op, outcome, kind))
	case redlatch.Ended:
		m.observe(ctx, m.hold, e.Held, m.values(e.Name, e.Kind, e.End()))
		if reason := e.LossReason(); reason != "" {
			m.lost.WithLabelValues(m.values(e.Name, e.Kind, reason)...).Inc()
		}
	case redlatch.Gap:
		m.gaps.WithLabelValues(m.values(e.Name, e.Kind)...).Inc()
	}
	return ctx
}

// values returns the values of the labels that labels returns.
func (m *Metrics) values(name, kind string, others ...string) []string {
	all := make([]string, 0, len(others)+2)
	all = append(all, kind)
	if m.grouping != nil {
		all = append(all, m.groupOf(name))
	}
	return append(all, others...)
}

// groupOf returns the group of a lock's name, as a label can have it.
func (m *Metrics) groupOf(name string) string {
	group := m.grouping(name)
	if !utf8.ValidString(group) {
		return OtherGroup
	}
	return m.groups.of(group)
}

// observe adds a duration to a histogram, with an exemplar if there is one.
func (m *Metrics) observe(ctx context.Context, h *prometheus.HistogramVec, d time.Duration, values []string) {
	to := h.WithLabelValues(values...)
	if m.exemplar != nil {
		if labels := m.exemplar(ctx); labels != nil && fits(labels) {
			if with, can := to.(prometheus.ExemplarObserver); can {
				with.ObserveWithExemplar(d.Seconds(), labels)
				return
			}
		}
	}
	to.Observe(d.Seconds())
}

// fits reports whether an exemplar can have these labels.
func fits(labels prometheus.Labels) bool {
	n := 0
	for name, value := range labels {
		n += utf8.RuneCountInString(name) + utf8.RuneCountInString(value)
	}
	return n <= prometheus.ExemplarMaxRunes
}

// series are the kind and the group of gauges.
type series struct{ kind, group string }

// see remembers that there are locks of a kind and group: from then on their gauges are there,
// also while they are 0.
func (m *Metrics) see(name, kind string) {
	s := series{kind: kind}
	if m.grouping != nil {
		s.group = m.groupOf(name)
	}
	if _, known := m.seen.Load(s); !known {
		m.seen.Store(s, struct{}{})
	}
}

// Describe is part of prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.collectors() {
		c.Describe(out)
	}
	out <- m.held
	out <- m.waiting
	out <- m.oldest
}

// Collect is part of prometheus.Collector. It asks the clients for their stats.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	for _, c := range m.collectors() {
		c.Collect(out)
	}
	for s, n := range m.now() {
		values := []string{s.kind}
		if m.grouping != nil {
			values = append(values, s.group)
		}
		out <- prometheus.MustNewConstMetric(m.held, prometheus.GaugeValue, float64(n.Held), values...)
		out <- prometheus.MustNewConstMetric(m.waiting, prometheus.GaugeValue, float64(n.Waiting), values...)
		out <- prometheus.MustNewConstMetric(m.oldest, prometheus.GaugeValue, n.OldestHold.Seconds(), values...)
	}
}

func (m *Metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.acquire, m.hold, m.renewal, m.slack, m.lost, m.evicted, m.gaps, m.reconnects}
}

// now returns the counts of all clients.
func (m *Metrics) now() map[series]redlatch.KindStats {
	m.mu.Lock()
	clients := make([]*redlatch.Client, 0, len(m.clients))
	for c := range m.clients {
		clients = append(clients, c)
	}
	m.mu.Unlock()
	all := map[series]redlatch.KindStats{}
	m.seen.Range(func(key, _ any) bool {
		if s, is := key.(series); is {
			all[s] = redlatch.KindStats{}
		}
		return true
	})
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
