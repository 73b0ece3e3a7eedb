//go:build observed

package contest

import (
	"fmt"
	"os"
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/otelredlatch"
	"github.com/redlatch/redlatch/promredlatch"
)

// sampled is the environment variable that sets the fraction of traced acquisitions, 0.01 by
// default.
const sampled = "BENCH_SAMPLED"

func observed() []redlatch.Option {
	part := 0.01
	if s := os.Getenv(sampled); s != "" {
		var err error
		if part, err = strconv.ParseFloat(s, 64); err != nil {
			panic(fmt.Sprintf("bench: %s: %v", sampled, err))
		}
	}
	metrics := promredlatch.New()
	prometheus.NewRegistry().MustRegister(metrics)
	telemetry, err := otelredlatch.New(
		otelredlatch.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))),
		otelredlatch.WithTracerProvider(sdktrace.NewTracerProvider(
			sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(part))),
			sdktrace.WithBatcher(tracetest.NewNoopExporter()),
		)),
	)
	if err != nil {
		panic(err)
	}
	return []redlatch.Option{redlatch.WithObserver(metrics.Observer(), telemetry.Observer())}
}
