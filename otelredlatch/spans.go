package otelredlatch

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/redlatch/redlatch"
)

// The names of spans.
const (
	spanLock   = "redlatch.lock"
	spanDo     = "redlatch.do"
	spanUnlock = "redlatch.unlock"
	spanLoss   = "redlatch.loss"
)

// The keys of attributes of spans and their events.
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

// call is one acquisition, carried by the context of its events and of its holds.
type call struct {
	span   trace.Span        // redlatch.lock
	parent trace.SpanContext // the caller's
}

// doing is a function of Do, carried by its context.
type doing struct{ span trace.Span }

type (
	callKey  struct{}
	doingKey struct{}
)

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// Observe is part of redlatch.Observer: what belongs to no caller.
func (o *Observer) Observe(event redlatch.Event) { o.measure(context.Background(), false, event) }

// ObserveContext is part of redlatch.ContextObserver.
func (o *Observer) ObserveContext(ctx context.Context, event redlatch.Event) context.Context {
	switch e := event.(type) {
	case redlatch.Opened, redlatch.Closed:
		o.watch(event)
		return ctx
	case redlatch.Started:
		o.see(ctx, series{kind: e.Kind, group: o.of(e.Name, e.Kind).group})
		return o.started(ctx, e)
	case redlatch.DoStarted:
		return o.doStarted(ctx, e)
	case redlatch.DoEnded:
		o.doEnded(ctx, e)
		return ctx
	}
	c := callOf(ctx)
	o.measure(ctx, c != nil, event)
	if c != nil { // it is sampled
		o.during(ctx, c, event)
	}
	if e, over := event.(redlatch.Ended); over {
		o.lostIf(ctx, c, e)
	}
	return ctx
}

// started begins the span of a call.
func (o *Observer) started(ctx context.Context, e redlatch.Started) context.Context {
	within, span := o.tracer.Start(ctx, spanLock)
	if span.IsRecording() {
		span.SetAttributes(append(o.about(e.Name, e.Kind), keyOp.String(e.Op))...)
		if e.Locks > 1 {
			span.SetAttributes(keyLocks.Int(e.Locks))
		}
	}
	if !span.SpanContext().IsSampled() {
		return ctx
	}
	return context.WithValue(within, callKey{}, &call{span, trace.SpanContextFromContext(ctx)})
}

// about returns the attributes that tell of which lock a span is.
func (o *Observer) about(name, kind string) []attribute.KeyValue {
	all := append(make([]attribute.KeyValue, 0, 8), keyKind.String(kind))
	if o.set.shown != nil {
		all = append(all, keyName.String(o.set.shown(name)))
	}
	return all
}

// during adds an event to the span of a call, or ends it.
func (o *Observer) during(ctx context.Context, c *call, event redlatch.Event) {
	switch e := event.(type) {
	case redlatch.Attempted:
		c.span.AddEvent("attempt", trace.WithAttributes(attempted(e)...))
	case redlatch.Queued:
		var all []attribute.KeyValue
		if e.Position > 0 {
			all = append(all, keyPosition.Int(e.Position))
		}
		c.span.AddEvent("queued", trace.WithAttributes(all...))
	case redlatch.Woken:
		c.span.AddEvent("woken", trace.WithAttributes(keyBy.String(e.By)))
	case redlatch.Gap:
		c.span.AddEvent("gap")
	case redlatch.Acquired:
		c.span.SetAttributes(keyOutcome.String("acquired"), keyAttempts.Int(e.Attempts),
			keyReentry.Bool(e.Reentry), keyTransfer.Bool(e.Transferred))
		if !e.Owner.IsZero() {
			c.span.SetAttributes(keyOwner.String(e.Owner.String()))
		}
		c.span.End()
	case redlatch.NotAcquired:
		outcome := e.Outcome()
		c.span.SetAttributes(keyOutcome.String(outcome), keyAttempts.Int(e.Attempts))
		if outcome == failed {
			fail(c.span, e.Err)
		}
		c.span.End()
	case redlatch.Released:
		o.released(ctx, c, e)
	}
}

// attempted tells of an attempt that did not get the lock, and of the owner that has it.
func attempted(e redlatch.Attempted) []attribute.KeyValue {
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

// fail says that a span ended with an error. Its text has the lock's name in it, and stays here.
func fail(span trace.Span, err error) {
	kind := redlatch.ErrorType(err)
	span.SetAttributes(keyError.String(kind))
	span.SetStatus(codes.Error, kind)
}

// doStarted begins the span of a function.
func (o *Observer) doStarted(ctx context.Context, e redlatch.DoStarted) context.Context {
	ctx, span := o.tracer.Start(ctx, spanDo)
	if span.IsRecording() {
		span.SetAttributes(o.about(e.Name, e.Kind)...)
	}
	return context.WithValue(ctx, doingKey{}, &doing{span})
}

// doEnded ends it. What kind of error a function returned is not known here.
func (o *Observer) doEnded(ctx context.Context, e redlatch.DoEnded) {
	d, ok := ctx.Value(doingKey{}).(*doing)
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

// link is what a span has that follows from an acquisition.
func (c *call) link() trace.SpanStartOption {
	return trace.WithLinks(trace.Link{SpanContext: c.span.SpanContext()})
}

// released reports an Unlock, which is over.
func (o *Observer) released(ctx context.Context, c *call, e redlatch.Released) {
	now := time.Now()
	_, span := o.tracer.Start(trace.ContextWithSpanContext(ctx, c.parent), spanUnlock, c.link(),
		trace.WithTimestamp(now.Add(-e.Took)), trace.WithAttributes(o.about(e.Name, e.Kind)...))
	if !e.Owner.IsZero() {
		span.SetAttributes(keyOwner.String(e.Owner.String()))
	}
	if e.Err != nil {
		fail(span, e.Err)
	}
	span.End(trace.WithTimestamp(now))
}

// lostIf reports a hold that was lost, in a trace of its own.
func (o *Observer) lostIf(ctx context.Context, c *call, e redlatch.Ended) {
	reason := e.LossReason()
	if reason == "" {
		return
	}
	opts := []trace.SpanStartOption{trace.WithNewRoot(), trace.WithAttributes(o.about(e.Name, e.Kind)...)}
	if c != nil { // its acquisition was sampled
		opts = append(opts, c.link())
	}
	_, span := o.tracer.Start(ctx, spanLoss, opts...)
	span.SetAttributes(keyReason.String(reason), keyHeld.Float64(e.Held.Seconds()))
	if !e.Owner.IsZero() {
		span.SetAttributes(keyOwner.String(e.Owner.String()))
	}
	if loss, is := lossOf(e.Err); is {
		span.SetAttributes(keyWhy.String(string(loss)))
	}
	fail(span, e.Err)
	span.End()
}

// lossOf returns the reason of a loss in full. It names no lock.
func lossOf(err error) (loss redlatch.Loss, is bool) {
	is = errors.As(err, &loss)
	return loss, is
}
