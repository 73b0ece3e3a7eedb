// Package otelredlatch reports metrics and spans of Redlatch's locks to OpenTelemetry.
//
//	telemetry, err := otelredlatch.New()
//	if err != nil { … }
//	client, err := redlatch.Open(ctx, url, redlatch.WithObserver(telemetry.Observer()))
//
// It uses only the API of OpenTelemetry, with the global providers by default: the program brings the SDK.
// One Telemetry serves all clients of a process. docs/observability.md lists the metrics and spans.
//
// A lock's name, its owner and the client are never attributes of metrics, so the number of series does not
// depend on the number of locks; [WithGroup] groups names. Calls that acquire or release a lock, functions
// of Do and losses have spans, with the lock's name unless [WithoutNames] or [WithHashedNames] is set. A hold
// has no span, because it may last for days.
//
// For Prometheus without OpenTelemetry see module promredlatch.
package otelredlatch
