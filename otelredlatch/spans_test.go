package otelredlatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/otelredlatch"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
)

// root starts a caller's span.
func (c *collected) root() (context.Context, trace.Span) {
	return c.traces.Tracer("test").Start(c.t.Context(), "root")
}

// only returns the only span with a name.
func (c *collected) only(name string) sdktrace.ReadOnlySpan {
	c.t.Helper()
	all := c.ended(name)
	require.Len(c.t, all, 1, name)
	return all[0]
}

func TestDoRecordsThreeSpans(t *testing.T) {
	observed(t, func(c *collected, _ *redistest.MiniServer, client *redlatch.Client) {
		t := c.t
		l := rlock.New(client, "job")
		ctx, root := c.root()
		require.NoError(t, l.Do(ctx, func(ctx context.Context) error {
			_, work := c.traces.Tracer("test").Start(ctx, "work")
			defer work.End()
			require.Len(t, c.ended("redlatch.lock"), 1, "the span excludes work under the lock")
			return nil
		}))
		lock, do, work, unlock := c.only("redlatch.lock"), c.only("redlatch.do"), c.only("work"), c.only("redlatch.unlock")
		for _, s := range []sdktrace.ReadOnlySpan{lock, do, unlock} {
			require.Equal(t, root.SpanContext().SpanID(), s.Parent().SpanID(), s.Name())
			require.Equal(t, root.SpanContext().TraceID(), s.SpanContext().TraceID(), s.Name())
			require.Equal(t, l.Name(), attrs(s.Attributes())["redlatch.lock.name"])
			require.Equal(t, "plain", attrs(s.Attributes())["redlatch.lock.kind"])
			require.Equal(t, codes.Unset, s.Status().Code)
			require.False(t, s.EndTime().Before(s.StartTime()))
		}
		require.Equal(t, do.SpanContext().SpanID(), work.Parent().SpanID())
		require.False(t, do.StartTime().Before(lock.EndTime()))
		require.Len(t, unlock.Links(), 1)
		require.True(t, unlock.Links()[0].SpanContext.Equal(lock.SpanContext()))
		all := attrs(lock.Attributes())
		require.Equal(t, "acquired", all["redlatch.outcome"])
		require.Equal(t, "lock", all["redlatch.operation"])
		require.Equal(t, "1", all["redlatch.attempts"])
		require.Equal(t, attrs(unlock.Attributes())["redlatch.owner"], all["redlatch.owner"])
	})
}

func TestWaitIsRecordedAsEvents(t *testing.T) {
	observed(t, func(c *collected, s *redistest.MiniServer, client *redlatch.Client) {
		t := c.t
		const name = "job"
		hold, err := rfairlock.New(collect(t).open(s), name).Lock(t.Context())
		require.NoError(t, err)
		done := make(chan error, 1)
		ctx, _ := c.root()
		go func() { done <- rfairlock.New(client, name).Do(ctx, func(context.Context) error { return nil }) }()
		synctest.Wait()
		require.NoError(t, hold.Unlock())
		require.NoError(t, <-done)
		var names []string
		for _, e := range c.only("redlatch.lock").Events() {
			names = append(names, e.Name)
			all := attrs(e.Attributes)
			switch e.Name {
			case "attempt":
				require.Equal(t, hold.Owner().String(), all["redlatch.holder"])
			case "queued":
				require.Equal(t, "1", all["redlatch.queue.position"])
			case "woken":
				require.Equal(t, "message", all["redlatch.woken.by"])
			}
		}
		require.Equal(t, []string{"attempt", "queued"}, names[:2])
		require.Equal(t, "woken", names[len(names)-1])
	})
}

func TestNotAcquiredIsNotSpanError(t *testing.T) {
	observed(t, func(c *collected, s *redistest.MiniServer, client *redlatch.Client) {
		t := c.t
		l := rlock.New(client, "job")
		s.Do(t, "HSET", l.Name(), "another:1", "1")
		_, err := l.TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		s.Do(t, "DEL", l.Name())
		s.Do(t, "SET", l.Name(), "no lock")
		_, err = l.TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrWrongType)
		all := c.ended("redlatch.lock")
		require.Len(t, all, 2)
		require.Equal(t, "refused", attrs(all[0].Attributes())["redlatch.outcome"])
		require.Equal(t, codes.Unset, all[0].Status().Code)
		require.NotContains(t, attrs(all[0].Attributes()), "error.type")
		require.Equal(t, "failed", attrs(all[1].Attributes())["redlatch.outcome"])
		require.Equal(t, codes.Error, all[1].Status().Code)
		require.Equal(t, "wrong_type", attrs(all[1].Attributes())["error.type"])
	})
}

func TestLossSpanLinksToAcquire(t *testing.T) {
	observed(t, func(c *collected, s *redistest.MiniServer, client *redlatch.Client) {
		t := c.t
		c.lose(s, client)
		lock, loss := c.only("redlatch.lock"), c.only("redlatch.loss")
		require.False(t, loss.Parent().IsValid())
		require.NotEqual(t, lock.SpanContext().TraceID(), loss.SpanContext().TraceID())
		require.Len(t, loss.Links(), 1)
		require.True(t, loss.Links()[0].SpanContext.Equal(lock.SpanContext()))
		require.Equal(t, codes.Error, loss.Status().Code)
		require.Equal(t, "gone", attrs(loss.Attributes())["redlatch.loss.reason"])
		require.Equal(t, string(redlatch.LossTaken), attrs(loss.Attributes())["redlatch.loss.description"])
		require.Equal(t, "lost", attrs(c.only("redlatch.unlock").Attributes())["error.type"])
	})
}

func TestSpanNamesHashedOrOmitted(t *testing.T) {
	t.Parallel()
	for what, opt := range map[string]otelredlatch.Option{
		"off": otelredlatch.WithoutNames(), "hashed": otelredlatch.WithHashedNames([]byte("of the fleet")),
	} {
		t.Run(what, func(t *testing.T) {
			observed(t, func(c *collected, s *redistest.MiniServer, client *redlatch.Client) {
				t := c.t
				l := rlock.New(client, "secret")
				require.NoError(t, l.Do(t.Context(), func(context.Context) error { return nil }))
				s.Do(t, "SET", l.Name(), "no lock")
				_, err := l.Lock(t.Context())
				require.ErrorContains(t, err, l.Name())
				c.lose(s, client)
				hashes := map[string]bool{}
				for _, s := range c.spans.Ended() {
					hash, has := attrs(s.Attributes())["redlatch.lock.name"]
					require.Equal(t, what == "hashed", has, s.Name())
					hashes[hash] = true
					for _, v := range attrs(s.Attributes()) {
						require.NotContains(t, v, l.Name(), s.Name())
					}
					require.NotContains(t, s.Status().Description, l.Name())
				}
				if what == "hashed" {
					require.Len(t, hashes, 2, "two locks")
				}
			}, opt)
		})
	}
}

func TestFailedFunctionSetsSpanError(t *testing.T) {
	observed(t, func(c *collected, _ *redistest.MiniServer, client *redlatch.Client) {
		t := c.t
		l := rlock.New(client, "job")
		require.Error(t, l.Do(t.Context(), func(context.Context) error { return errors.New("oops") }))
		require.Panics(t, func() { _ = l.Do(t.Context(), func(context.Context) error { panic("oops") }) })
		all := c.ended("redlatch.do")
		require.Len(t, all, 2)
		require.Equal(t, "_OTHER", attrs(all[0].Attributes())["error.type"])
		require.Equal(t, "panic", attrs(all[1].Attributes())["error.type"])
		require.Len(t, c.ended("redlatch.unlock"), 2)
	})
}

// A multi-lock has one span per script that acquires locks, and one per Unlock.
func TestMultiLockRecordsSpanPerScript(t *testing.T) {
	observed(t, func(c *collected, _ *redistest.MiniServer, client *redlatch.Client) {
		t := c.t
		name := "job"
		require.NoError(t, rmultilock.New(client, name, name+"2").Do(t.Context(), func(context.Context) error { return nil }))
		require.Equal(t, "2", attrs(c.only("redlatch.lock").Attributes())["redlatch.locks"])
		require.Equal(t, "multi", attrs(c.only("redlatch.do").Attributes())["redlatch.lock.kind"])
		unlocks := c.ended("redlatch.unlock")
		require.Len(t, unlocks, 2)
		require.True(t, unlocks[0].Links()[0].SpanContext.Equal(c.only("redlatch.lock").SpanContext()))
	})
}

// Unsampled calls leave no spans, except for a sampled loss. A span that is only recorded also ends.
func TestUnsampledCallsRecordNoSpans(t *testing.T) {
	t.Parallel()
	for what, want := range map[string]struct {
		sampler sdktrace.Sampler
		ended   []string
	}{
		"nothing":              {sdktrace.NeverSample(), nil},
		"all but acquisitions": {allButLocks{}, []string{"redlatch.do"}},
		"recorded only":        {recordOnly{}, []string{"redlatch.lock", "redlatch.do", "redlatch.unlock"}},
	} {
		t.Run(what, func(t *testing.T) {
			spans := tracetest.NewSpanRecorder()
			traces := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans), sdktrace.WithSampler(want.sampler))
			observed(t, func(c *collected, _ *redistest.MiniServer, client *redlatch.Client) {
				t := c.t
				require.NoError(t, rlock.New(client, "job").Do(t.Context(), func(context.Context) error { return nil }))
				var ended []string
				for _, s := range spans.Ended() {
					ended = append(ended, s.Name())
				}
				require.ElementsMatch(t, want.ended, ended)
			}, otelredlatch.WithTracerProvider(traces))
		})
	}
}

// Each of two observers ends its own spans.
func TestClientMayHaveTwoObservers(t *testing.T) {
	observed(t, func(first *collected, s *redistest.MiniServer, _ *redlatch.Client) {
		t := first.t
		second := collect(t)
		client, err := redlatch.New(s.Server.Dial, redlatch.WithObserver(first.tell, second.tell))
		require.NoError(t, err)
		require.NoError(t, rlock.New(client, "job").Do(t.Context(), func(context.Context) error { return nil }))
		require.NoError(t, client.Close())
		for _, c := range []*collected{first, second} {
			for _, name := range []string{"redlatch.lock", "redlatch.do", "redlatch.unlock"} {
				require.Len(t, c.ended(name), 1, name)
			}
		}
	})
}

type recordOnly struct{}

func (recordOnly) ShouldSample(sdktrace.SamplingParameters) sdktrace.SamplingResult {
	return sdktrace.SamplingResult{Decision: sdktrace.RecordOnly}
}

func (recordOnly) Description() string { return "records only" }

// allButLocks samples the spans of functions passed to Do, but not of their acquisitions.
type allButLocks struct{}

func (allButLocks) ShouldSample(p sdktrace.SamplingParameters) sdktrace.SamplingResult {
	if p.Name == "redlatch.lock" {
		return sdktrace.NeverSample().ShouldSample(p)
	}
	return sdktrace.AlwaysSample().ShouldSample(p)
}

func (allButLocks) Description() string { return "all but acquisitions" }

// A lock cannot have such a name. The OTLP exporter would drop the whole batch for one invalid attribute.
func TestInvalidUTF8NameIsSanitized(t *testing.T) {
	observed(t, func(c *collected, _ *redistest.MiniServer, client *redlatch.Client) {
		t := c.t
		_, err := rlock.New(client, "upload:\xff").TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		require.Equal(t, "upload:\ufffd", attrs(c.only("redlatch.lock").Attributes())["redlatch.lock.name"])
	})
}

func TestHandOverPropagatesTrace(t *testing.T) {
	observed(t, func(c *collected, s *redistest.MiniServer, client *redlatch.Client) {
		t := c.t
		var traces propagation.TraceContext
		l := rlock.New(client, "job")
		ctx, root := c.root()
		hold, err := l.Lock(ctx)
		require.NoError(t, err)
		owner, err := hold.HandOver()
		require.NoError(t, err)
		headers := propagation.MapCarrier{}
		traces.Inject(ctx, headers)

		other := collect(t)
		there := traces.Extract(t.Context(), propagation.MapCarrier{"traceparent": headers["traceparent"]})
		resumed, err := rlock.New(other.open(s), l.Name()).Resume(there, owner)
		require.NoError(t, err)
		require.NoError(t, resumed.Unlock())
		lock := other.only("redlatch.lock")
		require.Equal(t, "resume", attrs(lock.Attributes())["redlatch.operation"])
		require.Equal(t, root.SpanContext().TraceID(), lock.SpanContext().TraceID())
		require.Equal(t, root.SpanContext().SpanID(), lock.Parent().SpanID())
		require.Equal(t, root.SpanContext().TraceID(), other.only("redlatch.unlock").SpanContext().TraceID())
	})
}
