package otelredlatch

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/redlatch/redlatch"
)

// Observer returns the observer for redlatch.WithObserver. Several clients may share it.
func (t *Telemetry) Observer() redlatch.Observer {
	return redlatch.Observer{
		Opened: t.opened, Closed: t.closed,
		Started: t.started, Attempted: t.attempted, Queued: t.queued, Woken: t.woken, Gap: t.gap,
		Acquired: t.acquired, NotAcquired: t.notAcquired,
		DoStarted: t.doStarted, DoEnded: t.doEnded,
		Ended: t.ended, Released: t.released,
		Renewed: t.renewed, Evicted: t.evicted, Reconnected: t.reconnected,
	}
}

func (t *Telemetry) opened(c *redlatch.Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.clients[c] = struct{}{}
}

func (t *Telemetry) closed(c *redlatch.Client) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.clients, c)
}

func (t *Telemetry) started(ctx context.Context, e redlatch.Started) context.Context {
	t.see(ctx, series{kind: e.Kind, group: t.of(e.Name, e.Kind).group})
	return t.begin(ctx, &e)
}

func (t *Telemetry) attempted(ctx context.Context, e redlatch.Attempted) {
	if c := t.callOf(ctx); c != nil {
		c.span.AddEvent("attempt", trace.WithAttributes(attempt(&e)...))
	}
}

func (t *Telemetry) queued(ctx context.Context, e redlatch.Queued) {
	if c := t.callOf(ctx); c != nil {
		c.span.AddEvent("queued", trace.WithAttributes(place(e)...))
	}
}

func (t *Telemetry) woken(ctx context.Context, e redlatch.Woken) {
	if c := t.callOf(ctx); c != nil {
		c.span.AddEvent("woken", trace.WithAttributes(keyBy.String(e.By)))
	}
}

func (t *Telemetry) gap(ctx context.Context, e redlatch.Gap) {
	t.gaps.Add(ctx, 1, t.attributes(t.of(e.Name, e.Kind)).add...)
	if c := t.callOf(ctx); c != nil {
		c.span.AddEvent("gap")
	}
}

func (t *Telemetry) acquired(ctx context.Context, e redlatch.Acquired) context.Context {
	l := t.of(e.Name, e.Kind)
	l.operation, l.outcome = e.Op, "acquired"
	c := t.callOf(ctx)
	t.record(ctx, c != nil, measurement{t.acquire, e.Wait.Seconds(), l})
	if c != nil {
		c.end(t, &e)
	}
	return ctx
}

func (t *Telemetry) notAcquired(ctx context.Context, e redlatch.NotAcquired) {
	l := t.of(e.Name, e.Kind)
	l.operation, l.outcome = e.Op, e.Outcome()
	if l.outcome == failed {
		l.errorType = redlatch.ErrorType(e.Err)
	}
	c := t.callOf(ctx)
	t.record(ctx, c != nil, measurement{t.acquire, e.Wait.Seconds(), l})
	if c != nil {
		c.endWithout(t, &e)
	}
}

func (t *Telemetry) ended(ctx context.Context, e redlatch.Ended) {
	l := t.of(e.Name, e.Kind)
	l.end = e.End()
	c := t.callOf(ctx)
	t.record(ctx, c != nil, measurement{t.hold, e.Held.Seconds(), l})
	if reason := e.LossReason(); reason != "" {
		l.end, l.reason = "", reason
		t.lost.Add(ctx, 1, t.attributes(l).add...)
		t.loss(ctx, c, &e, reason)
	}
}

func (t *Telemetry) released(ctx context.Context, e redlatch.Released) {
	if c := t.callOf(ctx); c != nil {
		t.unlocked(ctx, c, &e)
	}
}

func (t *Telemetry) renewed(e redlatch.Renewed) {
	ctx := context.Background()
	t.renewal.Record(ctx, e.Took.Seconds(), t.attributes(labels{errorType: redlatch.ErrorType(e.Err)}).record...)
	if e.Err == nil && e.Lost < e.Holds {
		t.slack.Record(ctx, e.Slack.Seconds())
	}
}

func (t *Telemetry) evicted(e redlatch.Evicted) {
	t.evictions.Add(context.Background(), 1, t.attributes(t.of(e.Name, e.Kind)).add...)
}

func (t *Telemetry) reconnected(redlatch.Reconnected) { t.reconnects.Add(context.Background(), 1) }
