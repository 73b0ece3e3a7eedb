package otelredlatch_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/otelredlatch"
)

// What the events of an uncontended pair cost.
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
				o.Ended(ctx, redlatch.Ended{Name: "orders:42", Kind: "plain", Held: time.Millisecond})
				o.Released(ctx, redlatch.Released{Name: "orders:42", Kind: "plain", Took: time.Millisecond})
			}
		})
	}
}
