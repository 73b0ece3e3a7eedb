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
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// contentType is Prometheus's text format. Using a library for it would impose a dependency on
// every user.
const contentType = "text/plain; version=0.0.4; charset=utf-8"

type status struct {
	figures   *figures // from the last successful look; nil before that
	stale     bool
	deadKnown bool

	up                bool  // the last look succeeded
	succeeded, failed int64 // looks
}

type text struct{ bytes.Buffer }

func (t *text) metric(name, kind, help string) {
	fmt.Fprintf(&t.Buffer, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

var escape = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)

// number writes a value. labels contains alternating names and values.
func (t *text) number(name string, value float64, labels ...string) {
	t.WriteString(name)
	before := "{"
	for pair := range slices.Chunk(labels, 2) {
		t.WriteString(before + pair[0] + `="` + escape.Replace(pair[1]) + `"`)
		before = ","
	}
	if len(labels) > 0 {
		t.WriteByte('}')
	}
	t.WriteByte(' ')
	t.WriteString(strconv.FormatFloat(value, 'g', -1, 64))
	t.WriteByte('\n')
}

type gauge struct {
	name, kind, help string
	value            func(*group) float64
}

var gauges = []gauge{
	{
		"redlatch_server_locks_without_ttl", "gauge", "Held locks without a lease: they never expire.",
		func(g *group) float64 { return float64(g.withoutTTL) },
	},
	{
		"redlatch_server_locks_stuck", "gauge", "Free locks with queued owners.",
		func(g *group) float64 { return float64(g.stuck) },
	},
	{
		"redlatch_server_locks_mixed", "gauge", "Locks with clients that wait for them as another kind of lock.",
		func(g *group) float64 { return float64(g.mixed) },
	},
	{
		"redlatch_server_queue_length", "gauge", "Owners queued for fair locks.",
		func(g *group) float64 { return float64(g.queued) },
	},
	{
		"redlatch_server_queue_longest", "gauge", "Owners in the longest queue.",
		func(g *group) float64 { return float64(g.longest) },
	},
	{
		"redlatch_server_waiting_connections", "gauge", "Connections waiting for locks without a queue, one per process.",
		func(g *group) float64 { return float64(g.waiting) },
	},
	{
		"redlatch_server_hold_oldest_age_seconds", "gauge", "Time since the exporter first saw the oldest hold, or 0: a lower bound of its age.",
		func(g *group) float64 { return g.oldest.Seconds() },
	},
	{
		"redlatch_server_holds_seen_total", "counter", "Holds that began while the exporter ran: a lower bound of acquisitions.",
		func(g *group) float64 { return float64(g.began) },
	},
}

// write omits stale figures.
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
	t.metric("redlatch_server_locks_held", "gauge", "Held locks, by apparent kind on the server.")
	for i := range f.groups {
		for _, kind := range inspect.Kinds() {
			if inspect.Kind(kind).IsNumber() {
				continue // numbers are not scanned
			}
			t.number("redlatch_server_locks_held", float64(f.groups[i].held[inspect.Kind(kind)]), "group", f.groups[i].name, "kind", kind)
		}
	}
	t.metric("redlatch_server_hold_oldest_info", "gauge", "The holder of the oldest hold, by its client's label, once it is a minute old; always 1.")
	for i := range f.groups {
		if holder := f.groups[i].holder; holder != "" {
			t.number("redlatch_server_hold_oldest_info", 1, "group", f.groups[i].name, "holder", strings.ToValidUTF8(sanitize.Line(holder), "?"))
		}
	}
	all := slices.Clone(gauges)
	if f.circlesKnown {
		all = append(all, gauge{
			"redlatch_server_locks_deadlocked", "gauge", "Locks in a deadlock: none of them is released until a wait or a lease ends.",
			func(g *group) float64 { return float64(g.deadlocked) },
		})
	}
	if deadKnown {
		all = append(all, gauge{
			"redlatch_server_waiters_dead", "gauge", "Queued owners without a subscriber in two scans: they block the queue.",
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

func (s *status) own(t *text, now time.Time) {
	single := func(name, help string, value float64) {
		t.metric(name, "gauge", help)
		t.number(name, value)
	}
	up := 0.0
	if s.up {
		up = 1
	}
	single("redlatch_exporter_up", "1 if the last scan of the server succeeded, else 0.", up)
	t.metric("redlatch_exporter_looks_total", "counter", "Scans of the server.")
	t.number("redlatch_exporter_looks_total", float64(s.succeeded), "outcome", "ok")
	t.number("redlatch_exporter_looks_total", float64(s.failed), "outcome", "error")
	f := s.figures
	if f == nil {
		return
	}
	single("redlatch_exporter_figures_age_seconds", "Age of the metrics.", now.Sub(f.at).Seconds())
	single("redlatch_exporter_look_duration_seconds", "Duration of the last successful scan.", f.took.Seconds())
	single("redlatch_exporter_keys", "Hashes and queues read by the last scan.", float64(f.keys))
	single("redlatch_exporter_keys_unreadable", "Keys that the exporter's user may not read.", float64(f.unreadable))
	single("redlatch_exporter_waiters_unchecked", "Queued owners not checked for a subscriber: too many, or rejected by the server.", float64(f.unchecked))
	single("redlatch_exporter_holds_untracked", "Holds without an age because there are too many.", float64(f.untracked))
}
