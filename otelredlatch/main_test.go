package otelredlatch_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/otelredlatch"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// collected holds the exported spans and metrics.
type collected struct {
	t      *testing.T
	spans  *tracetest.SpanRecorder
	traces *sdktrace.TracerProvider
	reader *sdkmetric.ManualReader
	*otelredlatch.Telemetry
	tell redlatch.Observer
}

func collect(t *testing.T, opts ...otelredlatch.Option) *collected {
	t.Helper()
	c := &collected{t: t, spans: tracetest.NewSpanRecorder(), reader: sdkmetric.NewManualReader()}
	c.traces = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(c.spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(c.reader))
	var err error
	c.Telemetry, err = otelredlatch.New(append([]otelredlatch.Option{
		otelredlatch.WithMeterProvider(meters), otelredlatch.WithTracerProvider(c.traces),
	}, opts...)...)
	require.NoError(t, err)
	c.tell = c.Observer()
	return c
}

// observed runs body in a bubble, with an embedded server and a client that the observer observes.
func observed(t *testing.T, body func(c *collected, s *redistest.MiniServer, client *redlatch.Client), opts ...otelredlatch.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := collect(t, opts...), redistest.Mini(t, embedded.WithInProcess())
		body(c, s, c.open(s))
	})
}

// open returns a client that the observer observes.
func (c *collected) open(s *redistest.MiniServer) *redlatch.Client {
	c.t.Helper()
	client, err := redlatch.New(s.Server.Dial, redlatch.WithObserver(c.Observer()))
	require.NoError(c.t, err)
	c.t.Cleanup(func() { require.NoError(c.t, client.Close()) })
	return client
}

// ended returns the spans with a name that have ended, in order.
func (c *collected) ended(name string) (all []sdktrace.ReadOnlySpan) {
	for _, s := range c.spans.Ended() {
		if s.Name() == name {
			all = append(all, s)
		}
	}
	return all
}

// attrs returns attributes by key, as text.
func attrs(list []attribute.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range list {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// metrics returns the collected metrics by name.
func (c *collected) metrics() map[string]metricdata.Metrics {
	c.t.Helper()
	var rm metricdata.ResourceMetrics
	require.NoError(c.t, c.reader.Collect(c.t.Context(), &rm))
	all := map[string]metricdata.Metrics{}
	for _, s := range rm.ScopeMetrics {
		require.Equal(c.t, "github.com/redlatch/redlatch/otelredlatch", s.Scope.Name)
		for _, m := range s.Metrics {
			all[m.Name] = m
		}
	}
	return all
}

// points returns a metric's value, or a histogram's count, for each set of attributes.
func points(t *testing.T, m metricdata.Metrics) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	each(t, m, func(set attribute.Set, v float64) { all[set.Encoded(attribute.DefaultEncoder())] = v })
	return all
}

// each calls f for each point of a metric.
func each(t *testing.T, m metricdata.Metrics, f func(set attribute.Set, v float64)) {
	t.Helper()
	switch data := m.Data.(type) {
	case metricdata.Histogram[float64]:
		for _, p := range data.DataPoints {
			require.Len(t, p.Bounds, 20)
			require.InDelta(t, 0.0001, p.Bounds[0], 0)
			require.InDelta(t, 300, p.Bounds[19], 0)
			f(p.Attributes, float64(p.Count))
		}
	case metricdata.Sum[int64]:
		for _, p := range data.DataPoints {
			f(p.Attributes, float64(p.Value))
		}
	case metricdata.Gauge[float64]:
		for _, p := range data.DataPoints {
			f(p.Attributes, p.Value)
		}
	default:
		require.Fail(t, "unexpected data", "%s: %T", m.Name, m.Data)
	}
}

// The cost of the events of an uncontended pair.
func BenchmarkPair(b *testing.B) {
	sampled := func(s sdktrace.Sampler) trace.TracerProvider {
		p := sdktrace.NewTracerProvider(sdktrace.WithSampler(s), sdktrace.WithBatcher(tracetest.NewNoopExporter()))
		b.Cleanup(func() { require.NoError(b, p.Shutdown(context.Background())) })
		return p
	}
	for _, c := range []struct {
		name   string
		traces trace.TracerProvider
	}{
		{"metrics alone", noop.NewTracerProvider()},
		{"not sampled", sampled(sdktrace.NeverSample())},
		{"sampled", sampled(sdktrace.AlwaysSample())},
	} {
		b.Run(c.name, func(b *testing.B) {
			telemetry, err := otelredlatch.New(otelredlatch.WithTracerProvider(c.traces),
				otelredlatch.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))))
			require.NoError(b, err)
			o := telemetry.Observer()
			b.ReportAllocs()
			for b.Loop() {
				ctx := o.Started(b.Context(), redlatch.Started{Op: "lock", Name: "orders:42", Kind: "plain", Locks: 1})
				ctx = o.Acquired(ctx, redlatch.Acquired{Op: "lock", Name: "orders:42", Kind: "plain", Wait: time.Millisecond, Attempts: 1})
				o.Ended(ctx, redlatch.Ended{Name: "orders:42", Kind: "plain", Held: time.Millisecond, End: "unlocked"})
				o.Released(ctx, redlatch.Released{Name: "orders:42", Kind: "plain", Took: time.Millisecond})
			}
		})
	}
}
