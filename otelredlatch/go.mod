// Metrics and traces for OpenTelemetry: a module of its own, so that OpenTelemetry stays out of
// the go.sum of those who do not use it.
module github.com/redlatch/redlatch/otelredlatch

go 1.25.0

require (
	github.com/redlatch/redlatch v0.0.0-00010101000000-000000000000
	go.opentelemetry.io/otel v1.47.0
	go.opentelemetry.io/otel/metric v1.47.0
	go.opentelemetry.io/otel/trace v1.47.0
)

replace github.com/redlatch/redlatch => ../
