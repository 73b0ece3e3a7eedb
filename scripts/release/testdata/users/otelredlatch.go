// This program takes a lock, and finds it in the metrics.
package main

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/otelredlatch"
	"github.com/redlatch/redlatch/rlock"
)

func run(ctx context.Context, url string) (err error) {
	reader := metric.NewManualReader()
	otel.SetMeterProvider(metric.NewMeterProvider(metric.WithReader(reader)))
	telemetry, err := otelredlatch.New()
	if err != nil {
		return err
	}
	client, err := redlatch.Open(ctx, url, redlatch.WithObserver(telemetry.Observer()))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	if err := rlock.New(client, "otelredlatch").Do(ctx, func(context.Context) error { return nil }); err != nil {
		return err
	}
	var found metricdata.ResourceMetrics
	err = reader.Collect(ctx, &found)
	if err == nil && len(found.ScopeMetrics) == 0 {
		err = errors.New("there are no metrics")
	}
	return err
}
