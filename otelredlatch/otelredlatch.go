package otelredlatch

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/redlatch/redlatch"
)

const scope = "github.com/redlatch/redlatch/otelredlatch"

// If [WithGroup] returns more than maxGroups groups, names in other groups count as otherGroup.
const (
	maxGroups  = 100
	otherGroup = "_other"
)

// Option configures [New].
type Option func(*settings)

type settings struct {
	meters   metric.MeterProvider
	tracers  trace.TracerProvider
	grouping func(name string) string
	shown    func(name string) string // the name on spans, or nil if it is omitted
}

// WithMeterProvider sets the provider for metrics. The default is otel.GetMeterProvider().
func WithMeterProvider(p metric.MeterProvider) Option { return func(s *settings) { s.meters = p } }

// WithTracerProvider sets the provider for spans. The default is otel.GetTracerProvider().
func WithTracerProvider(p trace.TracerProvider) Option { return func(s *settings) { s.tracers = p } }

// WithGroup adds the attribute group to the metrics with the attribute kind. group returns its
// value for a lock's name. It is called in each call to Lock, and must be fast and safe for
// concurrent use. Once there are 100 groups, names in any other group count as "_other". The
// default adds no attribute.
func WithGroup(group func(name string) string) Option {
	return func(s *settings) { s.grouping = group }
}

// WithoutNames omits the names of locks from spans.
func WithoutNames() Option { return func(s *settings) { s.shown = nil } }

// WithHashedNames replaces the lock's name on spans with the first 16 hexadecimal digits of its
// HMAC-SHA256. If all programs use the same secret key, the spans of a lock have the same name.
func WithHashedNames(key []byte) Option {
	key = append([]byte{}, key...)
	return func(s *settings) {
		s.shown = func(name string) string {
			h := hmac.New(sha256.New, key)
			_, _ = h.Write([]byte(name)) // never fails
			return hex.EncodeToString(h.Sum(nil)[:8])
		}
	}
}

// Telemetry reports the events of clients that use its Observer, in the instrumentation scope
// "github.com/redlatch/redlatch/otelredlatch". All methods are safe for concurrent use.
type Telemetry struct {
	set    settings
	tracer trace.Tracer
	meter  metric.Meter
	groups cache[string, struct{}]
	instruments

	registered metric.Registration

	mu      sync.Mutex // guards clients
	clients map[*redlatch.Client]struct{}
	seen    cache[series, struct{}]
}

// New creates the instruments. It returns an error if the meter does.
func New(opts ...Option) (*Telemetry, error) {
	set := settings{shown: func(name string) string { return name }}
	for _, o := range opts {
		if o != nil {
			o(&set)
		}
	}
	if set.meters == nil {
		set.meters = otel.GetMeterProvider()
	}
	if set.tracers == nil {
		set.tracers = otel.GetTracerProvider()
	}
	t := &Telemetry{
		set: set, tracer: set.tracers.Tracer(scope), meter: set.meters.Meter(scope),
		clients: map[*redlatch.Client]struct{}{},
	}
	if err := t.make(t.meter); err != nil {
		return nil, err
	}
	return t, nil
}

// Close stops reporting gauges. Programs need not call it before they exit.
func (t *Telemetry) Close() error {
	t.pending.mu.Lock()
	t.pending.closed = true
	t.recordAll()
	t.pending.mu.Unlock()
	return t.registered.Unregister()
}

// Observer returns the observer for redlatch.WithObserver. Several clients may share it.
func (t *Telemetry) Observer() redlatch.Observer {
	return redlatch.Observer{
		Opened: t.opened, Closed: t.closed,
		Started: t.started, Attempted: t.attempted, Queued: t.queued, Woken: t.woken,
		Acquired: t.acquired, NotAcquired: t.notAcquired,
		DoStarted: t.doStarted, DoEnded: t.doEnded,
		Ended: t.ended, Released: t.released,
		Renewed: t.renewed, Evicted: t.evicted, Reconnected: t.reconnected,
	}
}

func (t *Telemetry) opened(c *redlatch.Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clients[c] = struct{}{}
}

func (t *Telemetry) closed(c *redlatch.Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.clients, c)
}

func (t *Telemetry) started(ctx context.Context, e redlatch.Started) context.Context {
	t.see(ctx, series{kind: e.Kind, group: t.of(e.Name, e.Kind).group})
	return t.begin(ctx, &e)
}

func (t *Telemetry) attempted(ctx context.Context, e redlatch.Attempted) {
	if c := t.callOf(ctx); c != nil {
		c.span.AddEvent("attempt", trace.WithAttributes(attempt(&e)...))
	}
}

func (t *Telemetry) queued(ctx context.Context, e redlatch.Queued) {
	if c := t.callOf(ctx); c != nil {
		c.span.AddEvent("queued", trace.WithAttributes(place(e)...))
	}
}

func (t *Telemetry) woken(ctx context.Context, e redlatch.Woken) {
	if e.By == "gap" {
		t.gaps.Add(ctx, 1, t.attributes(t.of(e.Name, e.Kind)).add...)
	}
	if c := t.callOf(ctx); c != nil {
		c.span.AddEvent("woken", trace.WithAttributes(keyBy.String(e.By)))
	}
}

func (t *Telemetry) acquired(ctx context.Context, e redlatch.Acquired) context.Context {
	l := t.of(e.Name, e.Kind)
	l.operation, l.outcome = e.Op, "acquired"
	c := t.callOf(ctx)
	t.record(ctx, c != nil, measurement{t.acquire, e.Wait.Seconds(), l})
	if c != nil {
		c.end(t, &e)
	}
	return ctx
}

func (t *Telemetry) notAcquired(ctx context.Context, e redlatch.NotAcquired) {
	l := t.of(e.Name, e.Kind)
	l.operation, l.outcome = e.Op, e.Outcome
	if l.outcome == failed {
		l.errorType = redlatch.ErrorType(e.Err)
	}
	c := t.callOf(ctx)
	t.record(ctx, c != nil, measurement{t.acquire, e.Wait.Seconds(), l})
	if c != nil {
		c.endWithout(t, &e)
	}
}

func (t *Telemetry) ended(ctx context.Context, e redlatch.Ended) {
	l := t.of(e.Name, e.Kind)
	l.end = e.End
	c := t.callOf(ctx)
	t.record(ctx, c != nil, measurement{t.hold, e.Held.Seconds(), l})
	if reason := e.LossReason; reason != "" {
		l.end, l.reason = "", reason
		t.lost.Add(ctx, 1, t.attributes(l).add...)
		t.loss(ctx, c, &e, reason)
	}
}

func (t *Telemetry) released(ctx context.Context, e redlatch.Released) {
	if c := t.callOf(ctx); c != nil {
		t.unlocked(ctx, c, &e)
	}
}

func (t *Telemetry) renewed(e redlatch.Renewed) {
	ctx := context.Background()
	t.renewal.Record(ctx, e.Took.Seconds(), t.attributes(labels{errorType: redlatch.ErrorType(e.Err)}).record...)
	if e.Err == nil && e.Lost < e.Holds {
		t.slack.Record(ctx, e.Slack.Seconds())
	}
}

func (t *Telemetry) evicted(e redlatch.Evicted) {
	t.evictions.Add(context.Background(), 1, t.attributes(t.of(e.Name, e.Kind)).add...)
}

func (t *Telemetry) reconnected(redlatch.Reconnected) { t.reconnects.Add(context.Background(), 1) }
