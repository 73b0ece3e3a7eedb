// Package otelredlatch reports metrics and spans of Redlatch's locks to OpenTelemetry.
//
//	telemetry, err := otelredlatch.New()
//	if err != nil { … }
//	client, err := redlatch.Open(ctx, url, redlatch.WithObserver(telemetry.Observer()))
//
// It uses only OpenTelemetry's API, with the global providers by default: the program sets up the SDK. One
// Telemetry serves all clients in a process. docs/observability.md lists the metrics and spans.
//
// Names, owners and clients are never attributes of metrics, so the number of series does not depend on the
// number of locks; [WithGroup] groups names. Calls that acquire or release a lock, functions passed to Do,
// and losses have spans, with the lock's name unless [WithoutNames] or [WithHashedNames] is set. Holds, which
// may last for days, have no spans.
//
// For Prometheus without OpenTelemetry, see module promredlatch.
package otelredlatch
