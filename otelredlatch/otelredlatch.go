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

// MaxGroups is how many groups [WithGroup] can make. Names of any further one are counted under
// [OtherGroup], so that a function that makes a group of each name does no harm.
const MaxGroups = 100

// OtherGroup is the group of names for which there was no room.
const OtherGroup = "_other"

// Option is a setting of [New].
type Option func(*settings)

type settings struct {
	meters   metric.MeterProvider
	tracers  trace.TracerProvider
	grouping func(name string) string
	shown    func(name string) string // nil: names are on no span
}

// WithMeterProvider sets where metrics go. Default: otel.GetMeterProvider(), as it is when New is
// called or set later.
func WithMeterProvider(p metric.MeterProvider) Option { return func(s *settings) { s.meters = p } }

// WithTracerProvider sets where spans go. Default: otel.GetTracerProvider(), as it is when New is
// called or set later.
func WithTracerProvider(p trace.TracerProvider) Option { return func(s *settings) { s.tracers = p } }

// WithGroup adds the attribute group to the metrics that have the attribute kind: what group
// returns for the lock's name, such as its part before a colon. It is called in each call of
// Lock, and must be quick, safe for concurrent use, and return few different groups; see
// [MaxGroups]. Default: no such attribute.
func WithGroup(group func(name string) string) Option {
	return func(s *settings) { s.grouping = group }
}

// WithoutNames leaves the names of locks out of spans. Default: spans have them.
func WithoutNames() Option { return func(s *settings) { s.shown = nil } }

// WithHashedNames puts the first 16 hexadecimal digits of the HMAC-SHA256 of the lock's name on
// spans, in place of the name. With one key, which is kept secret, spans of one lock can be found
// together, in all programs, and the name cannot be guessed from them. Default: spans have the
// names as they are.
func WithHashedNames(key []byte) Option {
	key = append([]byte{}, key...)
	return func(s *settings) {
		s.shown = func(name string) string {
			h := hmac.New(sha256.New, key)
			_, _ = h.Write([]byte(name)) // a hash takes everything
			return hex.EncodeToString(h.Sum(nil)[:8])
		}
	}
}

// Telemetry reports what happens to the locks of clients that have its Observer. All methods are safe
// for concurrent use.
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

// New makes the instruments. An error is one of the meter that refuses an instrument.
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

// Close ends the reporting of the metrics that are asked for at each collection: held, waiting
// and the age of the oldest hold. A program that has one Telemetry until it ends need not call it.
func (t *Telemetry) Close() error {
	t.pending.mu.Lock()
	t.pending.closed = true
	t.recordAll()
	t.pending.mu.Unlock()
	return t.registered.Unregister()
}
