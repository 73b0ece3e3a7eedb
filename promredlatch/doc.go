// Package promredlatch reports the locks of Redlatch clients to Prometheus.
//
//	metrics := promredlatch.New()
//	prometheus.MustRegister(metrics)
//	client, err := redlatch.Open(ctx, url, redlatch.WithObserver(metrics.Observer()))
//
// One Metrics serves all clients of a process. docs/observability.md lists the metrics and says
// which to watch. A lock's name is never a label, nor are its owner and the client: the series
// are as many for a hundred thousand locks as for one. [WithGroup] makes groups of names.
//
// It is a module of its own: a program that does not import it has no client_golang in its
// go.sum. For OpenTelemetry there is the module otelredlatch, which reports the same metrics;
// [redlatch.Observers] gives a client both.
package promredlatch
