package exporter

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// contentType is that of what write writes: the text format of Prometheus, which is four rules:
// HELP and TYPE before the series of a metric, one series a line, labels in quotes, numbers as
// in Go. A library for it would be a dependency of every program that uses Redlatch.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

// status is what there is to say of the exporter itself.
type status struct {
	figures   *figures // of the last look that did not fail, nil before the first
	stale     bool     // they are too old to be shown
	deadKnown bool     // it is known which waiters are dead

	up                bool  // the last look did not fail
	succeeded, failed int64 // looks
}

// text gathers the series.
type text struct{ bytes.Buffer }

func (t *text) metric(name, kind, help string) {
	fmt.Fprintf(&t.Buffer, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// number writes one series. Labels are name and value in turn; no value needs to be escaped:
// groups are letters and digits, and the others are constants.
func (t *text) number(name string, value float64, labels ...string) {
	t.WriteString(name)
	before := "{"
	for pair := range slices.Chunk(labels, 2) {
		t.WriteString(before + strings.Join(pair, `="`) + `"`)
		before = ","
	}
	if len(labels) > 0 {
		t.WriteByte('}')
	}
	t.WriteByte(' ')
	t.WriteString(strconv.FormatFloat(value, 'g', -1, 64))
	t.WriteByte('\n')
}

// gauge is a metric that has one series for each group.
type gauge struct {
	name, kind, help string
	value            func(*group) float64
}

var gauges = []gauge{
	{
		"redlatch_server_locks_without_ttl", "gauge", "Locks that are held and have no lease: they are held until they are released.",
		func(g *group) float64 { return float64(g.withoutTTL) },
	},
	{
		"redlatch_server_locks_stuck", "gauge", "Locks that are free although owners are queued.",
		func(g *group) float64 { return float64(g.stuck) },
	},
	{
		"redlatch_server_locks_mixed", "gauge", "Locks that are waited for as for another kind of lock than they are.",
		func(g *group) float64 { return float64(g.mixed) },
	},
	{
		"redlatch_server_queue_length", "gauge", "Owners that are queued for fair locks.",
		func(g *group) float64 { return float64(g.queued) },
	},
	{
		"redlatch_server_queue_longest", "gauge", "Owners in the longest queue.",
		func(g *group) float64 { return float64(g.longest) },
	},
	{
		"redlatch_server_waiting_connections", "gauge", "Connections that wait for locks without a queue, one for each process.",
		func(g *group) float64 { return float64(g.waiting) },
	},
	{
		"redlatch_server_hold_oldest_age_seconds", "gauge", "For how long the exporter has seen the oldest hold, or 0: it is at least as old.",
		func(g *group) float64 { return g.oldest.Seconds() },
	},
	{
		"redlatch_server_holds_seen_total", "counter", "Holds that the exporter has seen begin: at least so many locks were acquired.",
		func(g *group) float64 { return float64(g.began) },
	},
}

// write writes the metrics in the text format of Prometheus. The figures are left out when they
// are stale: a gap says the truth, an old number does not.
func (s *status) write(w io.Writer, now time.Time) error {
	t := &text{}
	if s.figures != nil && !s.stale {
		s.figures.write(t, s.deadKnown)
	}
	s.own(t, now)
	_, err := w.Write(t.Bytes())
	return err
}

func (f *figures) write(t *text, deadKnown bool) {
	t.metric("redlatch_server_locks_held", "gauge", "Locks that are held, by what kind of lock they look like on the server.")
	for i := range f.groups {
		for _, kind := range inspect.Kinds() {
			if inspect.Kind(kind).IsNumber() {
				continue // they are not looked for
			}
			t.number("redlatch_server_locks_held", float64(f.groups[i].held[inspect.Kind(kind)]), "group", f.groups[i].name, "kind", kind)
		}
	}
	all := gauges
	if deadKnown {
		all = append(all[:len(all):len(all)], gauge{
			"redlatch_server_waiters_dead", "gauge", "Owners in queues that had no subscriber at two looks: they keep the others waiting.",
			func(g *group) float64 { return float64(g.dead) },
		})
	}
	for _, m := range all {
		t.metric(m.name, m.kind, m.help)
		for i := range f.groups {
			t.number(m.name, m.value(&f.groups[i]), "group", f.groups[i].name)
		}
	}
}

// own writes what the exporter tells of itself.
func (s *status) own(t *text, now time.Time) {
	single := func(name, help string, value float64) {
		t.metric(name, "gauge", help)
		t.number(name, value)
	}
	up := 0.0
	if s.up {
		up = 1
	}
	single("redlatch_exporter_up", "1 if the last look at the server succeeded, else 0.", up)
	t.metric("redlatch_exporter_looks_total", "counter", "Looks at the server.")
	t.number("redlatch_exporter_looks_total", float64(s.succeeded), "outcome", "ok")
	t.number("redlatch_exporter_looks_total", float64(s.failed), "outcome", "error")
	f := s.figures
	if f == nil {
		return
	}
	single("redlatch_exporter_figures_age_seconds", "How long ago the figures were found.", now.Sub(f.at).Seconds())
	single("redlatch_exporter_look_duration_seconds", "How long the last look took that succeeded.", f.took.Seconds())
	single("redlatch_exporter_keys", "Hashes and queues that the last look has looked into.", float64(f.keys))
	single("redlatch_exporter_keys_unreadable", "Keys among them that the exporter's user may not read.", float64(f.unreadable))
	single("redlatch_exporter_waiters_unchecked", "Owners in queues that were not checked for a subscriber: they are too many, or the server refuses.", float64(f.unchecked))
	single("redlatch_exporter_holds_untracked", "Holds without an age: they are too many.", float64(f.untracked))
}
