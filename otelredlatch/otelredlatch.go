package otelredlatch

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/redlatch/redlatch"
)

// Scope is the name of the instrumentation scope of all metrics and spans.
const Scope = "github.com/redlatch/redlatch/otelredlatch"

// MaxGroups bounds the groups of [WithGroup]. Names of further groups count as [OtherGroup].
const MaxGroups = 100

// OtherGroup is the group of names beyond MaxGroups.
const OtherGroup = "_other"

// Option configures [New].
type Option func(*settings)

type settings struct {
	meters   metric.MeterProvider
	tracers  trace.TracerProvider
	grouping func(name string) string
	shown    func(name string) string // the name on spans; nil for none
}

// WithMeterProvider sets the provider for metrics. Default: otel.GetMeterProvider().
func WithMeterProvider(p metric.MeterProvider) Option { return func(s *settings) { s.meters = p } }

// WithTracerProvider sets the provider for spans. Default: otel.GetTracerProvider().
func WithTracerProvider(p trace.TracerProvider) Option { return func(s *settings) { s.tracers = p } }

// WithGroup adds the attribute group to the metrics with the attribute kind. group maps a lock's name to it,
// for example to the part before a colon. It is called in each Lock and must be fast, safe for concurrent
// use, and return few groups; see [MaxGroups]. Default: no attribute.
func WithGroup(group func(name string) string) Option {
	return func(s *settings) { s.grouping = group }
}

// WithoutNames omits the names of locks from spans.
func WithoutNames() Option { return func(s *settings) { s.shown = nil } }

// WithHashedNames replaces the lock's name on spans with the first 16 hexadecimal digits of its
// HMAC-SHA256. With the same secret key in all programs, the spans of one lock have the same name, which
// cannot be guessed.
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

// Telemetry reports the events of clients with its Observer. All methods are safe for concurrent use.
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

// New creates the instruments. An error is from the meter.
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
		set: set, tracer: set.tracers.Tracer(Scope), meter: set.meters.Meter(Scope),
		clients: map[*redlatch.Client]struct{}{},
	}
	if err := t.make(t.meter); err != nil {
		return nil, err
	}
	return t, nil
}

// Close stops the reporting of gauges: held, waiting and the age of the oldest hold. A program need not
// call it before it exits.
func (t *Telemetry) Close() error {
	t.pending.mu.Lock()
	t.pending.closed = true
	t.recordAll()
	t.pending.mu.Unlock()
	return t.registered.Unregister()
}
