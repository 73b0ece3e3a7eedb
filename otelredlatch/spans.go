package otelredlatch

import (
	"context"
	"errors"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/redlatch/redlatch"
)

const (
	spanLock   = "redlatch.lock"
	spanDo     = "redlatch.do"
	spanUnlock = "redlatch.unlock"
	spanLoss   = "redlatch.loss"
)

const (
	keyName     = attribute.Key("redlatch.lock.name")
	keyKind     = attribute.Key("redlatch.lock.kind")
	keyLocks    = attribute.Key("redlatch.locks")
	keyOp       = attribute.Key("redlatch.operation")
	keyOutcome  = attribute.Key("redlatch.outcome")
	keyOwner    = attribute.Key("redlatch.owner")
	keyAttempts = attribute.Key("redlatch.attempts")
	keyReentry  = attribute.Key("redlatch.reentry")
	keyTransfer = attribute.Key("redlatch.transferred")
	keyAttempt  = attribute.Key("redlatch.attempt")
	keyHolder   = attribute.Key("redlatch.holder")
	keyTTL      = attribute.Key("redlatch.holder.ttl")
	keyPosition = attribute.Key("redlatch.queue.position")
	keyBy       = attribute.Key("redlatch.woken.by")
	keyReason   = attribute.Key("redlatch.loss.reason")
	keyWhy      = attribute.Key("redlatch.loss.description")
	keyHeld     = attribute.Key("redlatch.held")
	keyError    = attribute.Key("error.type")
)

// A call is stored in the context of its events and holds.
type call struct {
	span    trace.Span        // redlatch.lock
	parent  trace.SpanContext // the caller's span
	started redlatch.Started
}

type doing struct{ span trace.Span }

// The keys contain the Telemetry, because a client may have observers of several.
type (
	callKey  struct{ of *Telemetry }
	doingKey struct{ of *Telemetry }
)

func (t *Telemetry) callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{t}).(*call)
	return c
}

func (t *Telemetry) begin(ctx context.Context, e *redlatch.Started) context.Context {
	within, span := t.tracer.Start(ctx, spanLock)
	if !span.IsRecording() && !span.SpanContext().IsSampled() { // a no-op tracer returns the caller's span
		return ctx
	}
	return context.WithValue(within, callKey{t}, &call{span, trace.SpanContextFromContext(ctx), *e})
}

func (t *Telemetry) about(name, kind string, room int) []attribute.KeyValue {
	all := append(make([]attribute.KeyValue, 0, 2+room), keyKind.String(kind))
	if t.set.shown != nil {
		all = append(all, keyName.String(strings.ToValidUTF8(t.set.shown(name), "\ufffd"))) // names may be invalid UTF-8
	}
	return all
}

func (c *call) about(t *Telemetry, outcome string, attempts int) []attribute.KeyValue {
	all := append(t.about(c.started.Name, c.started.Kind, 7),
		keyOp.String(c.started.Op), keyOutcome.String(outcome), keyAttempts.Int(attempts))
	if c.started.Locks > 1 {
		all = append(all, keyLocks.Int(c.started.Locks))
	}
	return all
}

func (c *call) end(t *Telemetry, e *redlatch.Acquired) {
	all := append(c.about(t, "acquired", e.Attempts), keyReentry.Bool(e.Reentry), keyTransfer.Bool(e.Transferred))
	if !e.Owner.IsZero() {
		all = append(all, keyOwner.String(e.Owner.String()))
	}
	c.span.SetAttributes(all...)
	c.span.End()
}

func (c *call) endWithout(t *Telemetry, e *redlatch.NotAcquired) {
	outcome := e.Outcome
	c.span.SetAttributes(c.about(t, outcome, e.Attempts)...)
	if outcome == failed {
		fail(c.span, e.Err)
	}
	c.span.End()
}

func place(e redlatch.Queued) []attribute.KeyValue {
	if e.Position == 0 {
		return nil
	}
	return []attribute.KeyValue{keyPosition.Int(e.Position)}
}

func attempt(e *redlatch.Attempted) []attribute.KeyValue {
	all := []attribute.KeyValue{keyAttempt.Int(e.Attempt)}
	if !e.Holder.IsZero() {
		all = append(all, keyHolder.String(e.Holder.String()))
	}
	if e.TTL > 0 {
		all = append(all, keyTTL.Float64(e.TTL.Seconds()))
	}
	if e.Err != nil {
		all = append(all, keyError.String(redlatch.ErrorType(e.Err)))
	}
	return all
}

// The error's text contains the lock's name, so fail omits the text.
func fail(span trace.Span, err error) {
	kind := redlatch.ErrorType(err)
	span.SetAttributes(keyError.String(kind))
	span.SetStatus(codes.Error, kind)
}

func (t *Telemetry) doStarted(ctx context.Context, e redlatch.DoStarted) context.Context {
	ctx, span := t.tracer.Start(ctx, spanDo)
	if span.IsRecording() {
		span.SetAttributes(t.about(e.Name, e.Kind, 0)...)
	}
	return context.WithValue(ctx, doingKey{t}, &doing{span})
}

func (t *Telemetry) doEnded(ctx context.Context, e redlatch.DoEnded) {
	d, ok := ctx.Value(doingKey{t}).(*doing)
	if !ok {
		return
	}
	switch {
	case e.Panicked:
		d.span.SetAttributes(keyError.String("panic"))
		d.span.SetStatus(codes.Error, "panic")
	case e.Err != nil:
		fail(d.span, e.Err)
	}
	d.span.End()
}

func (c *call) link() trace.SpanStartOption {
	return trace.WithLinks(trace.Link{SpanContext: c.span.SpanContext()})
}

func (t *Telemetry) unlocked(ctx context.Context, c *call, e *redlatch.Released) {
	now := time.Now()
	_, span := t.tracer.Start(trace.ContextWithSpanContext(ctx, c.parent), spanUnlock, c.link(),
		trace.WithTimestamp(now.Add(-e.Took)))
	all := t.about(e.Name, e.Kind, 1)
	if !e.Owner.IsZero() {
		all = append(all, keyOwner.String(e.Owner.String()))
	}
	span.SetAttributes(all...)
	if e.Err != nil {
		fail(span, e.Err)
	}
	span.End(trace.WithTimestamp(now))
}

// loss reports the loss of a hold in a separate trace.
func (t *Telemetry) loss(ctx context.Context, c *call, e *redlatch.Ended, reason string) {
	opts := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithAttributes(t.about(e.Name, e.Kind, 0)...)}
	if c != nil { // the acquisition was sampled
		opts = append(opts, c.link())
	}
	_, span := t.tracer.Start(ctx, spanLoss, opts...)
	span.SetAttributes(keyReason.String(reason), keyHeld.Float64(e.Held.Seconds()))
	if !e.Owner.IsZero() {
		span.SetAttributes(keyOwner.String(e.Owner.String()))
	}
	if loss := redlatch.Loss(""); errors.As(e.Err, &loss) {
		span.SetAttributes(keyWhy.String(string(loss)))
	}
	fail(span, e.Err)
	span.End()
}
