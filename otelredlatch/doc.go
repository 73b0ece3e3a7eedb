// Package otelredlatch reports the locks of Redlatch clients to OpenTelemetry: metrics and spans.
//
//	telemetry, err := otelredlatch.New()
//	if err != nil { … }
//	client, err := redlatch.Open(ctx, url, redlatch.WithObserver(telemetry.Observer()))
//
// It uses the global providers, unless the options name others, and the API of OpenTelemetry
// alone: the program brings the SDK. One Telemetry serves all clients of a process.
//
// # Metrics
//
// docs/observability.md lists them and says which to watch. Their only attribute besides what an
// event is about (operation, outcome, end, reason, error.type) is the kind of lock. The lock's
// name, its owner and the client are never attributes of a metric: the series are as many for a
// hundred thousand locks as for one. [WithGroup] makes groups of names.
//
// # Spans
//
//	redlatch.lock    from the call of Lock, TryLock, Resume, Acquire or TryAcquire to its return
//	redlatch.do      the function that Do runs
//	redlatch.unlock  from the call of Unlock to its return
//	redlatch.loss    a hold was lost
//
// redlatch.lock is a child of the caller's span, and has nothing inside that runs under the
// lock. Its events are attempt, for one that did not get the lock, with the owner that has
// it; queued, with the place in the queue of a fair lock; woken; and gap. A hold is no span: it may last for days, and its span
// would be seen when it is over. redlatch.do is a child of the caller's span, too, beside
// redlatch.lock. Unlock has no context: its span is a child of the span in which the lock was
// acquired, with a link to the acquisition. A loss is a trace of its own with the same link.
//
// A refusal is an outcome and no error: the status of a span is Error only where error.type is
// set. Spans have the lock's name, see [WithoutNames] and [WithHashedNames].
//
// # Owners that travel
//
// An owner that [rlock.Hold.HandOver] returned goes to another process, and the trace should go
// with it: send the traceparent header beside the owner, as the example of package otelredlatch
// shows. Then redlatch.lock of Resume is in the same trace.
//
// It is a module of its own: a program that does not import it has no OpenTelemetry in its
// go.sum. For Prometheus without OpenTelemetry there is the module promredlatch.
package otelredlatch
