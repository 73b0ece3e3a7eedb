// Package otelredlatch reports metrics and spans of Redlatch's locks to OpenTelemetry.
//
//	telemetry, err := otelredlatch.New()
//	if err != nil { … }
//	client, err := redlatch.Open(ctx, url, redlatch.WithObserver(telemetry.Observer()))
//
// It uses the global providers by default and only the API of OpenTelemetry: the program brings the SDK.
// One Telemetry serves all clients of a process. For Prometheus without OpenTelemetry see module
// promredlatch.
//
// # Metrics
//
// docs/observability.md lists the metrics. Their attributes are the kind of lock and details of the event:
// operation, outcome, end, reason and error.type. The lock's name, its owner and the client are never
// attributes, so the number of series does not depend on the number of locks. [WithGroup] groups names.
//
// # Spans
//
//	redlatch.lock    a call of Lock, TryLock, Resume, Acquire or TryAcquire
//	redlatch.do      the function of Do
//	redlatch.unlock  a call of Unlock
//	redlatch.loss    the loss of a hold
//
// redlatch.lock and redlatch.do are children of the caller's span. Events of redlatch.lock are attempt, for
// an unsuccessful attempt, with the holder; queued, with the position in the queue of a fair lock; woken;
// and gap. A hold has no span, because it may last for days. Unlock has no context: its span is a child of
// the span in which the lock was acquired, with a link to the acquisition. A loss is a separate trace with
// the same link.
//
// The status of a span is Error only with error.type; a refusal is an outcome, not an error. Spans have the
// lock's name, see [WithoutNames] and [WithHashedNames].
//
// To continue the trace in a process that resumes an owner from [rlock.Hold.HandOver], send the traceparent
// header with the owner, as in the example.
package otelredlatch
