// Package promredlatch reports metrics of Redlatch's locks to Prometheus.
//
//	metrics := promredlatch.New()
//	prometheus.MustRegister(metrics)
//	client, err := redlatch.Open(ctx, url, redlatch.WithObserver(metrics.Observer()))
//
// One Metrics serves all clients in a process. docs/observability.md lists the metrics. Names, owners and
// clients are never labels, so the number of series does not depend on the number of locks; [WithGroup]
// groups names. The module otelredlatch reports the same metrics to OpenTelemetry.
package promredlatch
