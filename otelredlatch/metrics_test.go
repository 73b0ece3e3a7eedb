package otelredlatch_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/otelredlatch"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestMetricsCountEvents(t *testing.T) {
	observed(t, countWhatHappens)
}

func countWhatHappens(c *collected, s *redistest.MiniServer, client *redlatch.Client) {
	t := c.t
	t.Helper()
	l, fair := rlock.New(client, "plain"), rfairlock.New(client, "fair")
	hold, err := l.Lock(t.Context())
	require.NoError(t, err)
	_, err = l.TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	go func() { _, err := l.Lock(ctx); waits <- err }()
	synctest.Wait()
	all := c.metrics()
	require.InDelta(t, 1, points(t, all["redlatch.lock.waiting"])["kind=plain"], 0)
	require.InDelta(t, 1, points(t, all["redlatch.lock.held"])["kind=plain"], 0)
	time.Sleep(time.Second)
	require.InDelta(t, 1, points(t, c.metrics()["redlatch.lock.hold.oldest_age"])["kind=plain"], 0)
	cancel()
	require.Error(t, <-waits)
	require.NoError(t, hold.Unlock())
	require.NoError(t, fair.Do(t.Context(), func(context.Context) error { return nil }))
	s.Do(t, "SET", l.Name(), "no lock")
	_, err = l.Lock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrWrongType)
	c.lose(s, client)

	all = c.metrics()
	require.Equal(t, map[string]float64{
		"kind=plain,operation=lock,outcome=acquired":                     2,
		"kind=plain,operation=try-lock,outcome=refused":                  1,
		"kind=plain,operation=lock,outcome=canceled":                     1,
		"error.type=wrong_type,kind=plain,operation=lock,outcome=failed": 1,
		"kind=fair,operation=lock,outcome=acquired":                      1,
	}, points(t, all["redlatch.lock.acquire.duration"]))
	require.Equal(t, map[string]float64{
		"end=unlocked,kind=plain": 1, "end=lost,kind=plain": 1, "end=unlocked,kind=fair": 1,
	}, points(t, all["redlatch.lock.hold.duration"]))
	require.Equal(t, map[string]float64{
		"kind=plain,reason=gone": 1, "kind=plain,reason=late": 0, "kind=fair,reason=gone": 0, "kind=fair,reason=late": 0,
	}, points(t, all["redlatch.lock.lost"]))
	require.Positive(t, points(t, all["redlatch.renewal.duration"])[""])
	require.Zero(t, points(t, all["redlatch.lock.held"])["kind=plain"])
	require.NoError(t, c.Close())
	require.NotContains(t, c.metrics(), "redlatch.lock.held")
}

// lose makes a client lose a lock: a renewal finds that its key was deleted.
func (c *collected) lose(s *redistest.MiniServer, client *redlatch.Client) {
	c.t.Helper()
	l := rlock.New(client, "lost")
	hold, err := l.Lock(c.t.Context())
	require.NoError(c.t, err)
	s.Do(c.t, "DEL", l.Name())
	time.Sleep(time.Minute)
	require.ErrorIs(c.t, hold.Unlock(), redlatch.ErrLost)
}

// everything gives each metric a value.
func (c *collected) everything() {
	ctx := c.t.Context()
	c.tell.Started(ctx, redlatch.Started{Op: "lock", Name: "a", Kind: "plain", Locks: 1})
	c.tell.Acquired(ctx, redlatch.Acquired{Op: "lock", Name: "a", Kind: "plain", Wait: time.Millisecond})
	c.tell.NotAcquired(ctx, redlatch.NotAcquired{Op: "lock", Name: "a", Kind: "plain", Outcome: "failed", Err: redlatch.ErrClosed})
	c.tell.Ended(ctx, redlatch.Ended{Name: "a", Kind: "plain", End: "lost", LossReason: "late", Err: redlatch.LossNotRenewed})
	c.tell.Woken(ctx, redlatch.Woken{Name: "a", Kind: "plain", By: "gap"})
	c.tell.Woken(ctx, redlatch.Woken{Name: "a", Kind: "plain", By: "message"})
	c.tell.Renewed(redlatch.Renewed{Holds: 1, Slack: time.Second})
	c.tell.Renewed(redlatch.Renewed{Holds: 1, Err: redlatch.ErrNotSent})
	c.tell.Evicted(redlatch.Evicted{Name: "a", Kind: "fair"})
	c.tell.Reconnected(redlatch.Reconnected{Connection: "commands"})
}

// The golden list names each metric, its unit and its attributes.
func TestMetricsMatchGoldenList(t *testing.T) {
	t.Parallel()
	for _, grouped := range []bool{false, true} {
		var opts []otelredlatch.Option
		if grouped {
			opts = append(opts, otelredlatch.WithGroup(func(string) string { return "g" }))
		}
		c := collect(t, opts...)
		c.everything()
		var have []string
		for name, m := range c.metrics() {
			require.NotEmpty(t, m.Description)
			keys := map[string]bool{}
			each(t, m, func(set attribute.Set, _ float64) {
				for _, a := range set.ToSlice() {
					keys[strings.ReplaceAll(string(a.Key), ".", "_")] = true
				}
			})
			require.Equal(t, grouped && keys["kind"], keys["group"], "%s", name)
			delete(keys, "group")
			labels := []string{}
			for k := range keys {
				labels = append(labels, k)
			}
			if len(labels) == 0 {
				labels = append(labels, "-")
			}
			slices.Sort(labels)
			have = append(have, fmt.Sprintf("%s | %s | %s", name, m.Unit, strings.Join(labels, " ")))
		}
		slices.Sort(have)
		require.Equal(t, golden(t), have)
	}
}

// golden returns the golden list in the same form.
func golden(t *testing.T) (list []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/observability/metrics.txt")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		f := strings.Split(strings.TrimSpace(line), " | ")
		if len(f) != 6 || strings.HasPrefix(line, "#") || f[4] == "-" {
			continue // "-" marks metrics that no client reports
		}
		labels := strings.Fields(f[3])
		slices.Sort(labels)
		list = append(list, fmt.Sprintf("%s | %s | %s", f[4], f[2], strings.Join(labels, " ")))
	}
	slices.Sort(list)
	require.Greater(t, len(list), 10, "the list was not found: the check itself is broken")
	return list
}

// Prometheus does not see an increase in a series that starts at 1, so it would miss the first
// loss.
func TestFailureCountersStartAtZero(t *testing.T) {
	t.Parallel()
	c := collect(t)
	c.tell.Started(t.Context(), redlatch.Started{Op: "lock", Name: "orders", Kind: "plain", Locks: 1})
	all := c.metrics()
	require.Equal(t, map[string]float64{"kind=plain,reason=gone": 0, "kind=plain,reason=late": 0}, points(t, all["redlatch.lock.lost"]))
	require.Equal(t, map[string]float64{"kind=plain": 0}, points(t, all["redlatch.waiter.evicted"]))
	require.Equal(t, map[string]float64{"kind=plain": 0}, points(t, all["redlatch.subscription.gaps"]))
}

// An exporter cannot send an attribute that is not valid UTF-8.
func TestGroupAttributeIsValidUTF8(t *testing.T) {
	t.Parallel()
	c := collect(t, otelredlatch.WithGroup(func(string) string { return "\xff" }))
	c.everything()
	for _, m := range c.metrics() {
		each(t, m, func(all attribute.Set, _ float64) {
			if group, has := all.Value("group"); has {
				require.Equal(t, "_other", group.AsString())
			}
		})
	}
}

func TestManyNamesProduceFewSeries(t *testing.T) {
	t.Parallel()
	for what, opts := range map[string][]otelredlatch.Option{
		"no groups":          nil,
		"a few":              {otelredlatch.WithGroup(func(name string) string { return name[:1] })},
		"one group per name": {otelredlatch.WithGroup(func(name string) string { return name })},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := collect(t, opts...)
			c.everything()
			ctx := t.Context()
			names := 5000 // far more than the limit of groups
			if opts == nil {
				names = 100_000
			}
			for i := range names {
				name := fmt.Sprint(i)
				c.tell.Evicted(redlatch.Evicted{Name: name, Kind: "fair"})
				c.tell.Acquired(ctx, redlatch.Acquired{Op: "lock", Name: name, Kind: "plain"})
				c.tell.Ended(ctx, redlatch.Ended{Name: name, Kind: "plain", End: "unlocked"})
			}
			series := 0
			for _, m := range c.metrics() {
				each(t, m, func(attribute.Set, float64) { series++ })
			}
			require.Less(t, series, 7*(100+3))
			if opts == nil {
				require.Less(t, series, 20)
			}
		})
	}
}

// Durations of calls traced by this module, or only by the caller, have an exemplar.
func TestTracedDurationsHaveExemplars(t *testing.T) {
	t.Parallel()
	caller := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled})
	for what, opts := range map[string][]otelredlatch.Option{
		"by the module": nil, "by the caller": {otelredlatch.WithTracerProvider(noop.NewTracerProvider())},
	} {
		c := collect(t, opts...)
		ctx := c.tell.Started(trace.ContextWithSpanContext(t.Context(), caller), redlatch.Started{Op: "lock", Name: "a", Kind: "plain", Locks: 1})
		ctx = c.tell.Acquired(ctx, redlatch.Acquired{Op: "lock", Name: "a", Kind: "plain"})
		c.tell.Ended(ctx, redlatch.Ended{Name: "a", Kind: "plain", End: "unlocked"})
		for _, name := range []string{"redlatch.lock.acquire.duration", "redlatch.lock.hold.duration"} {
			data, is := c.metrics()[name].Data.(metricdata.Histogram[float64])
			require.True(t, is, "%s: %s", what, name)
			require.Len(t, data.DataPoints[0].Exemplars, 1, "%s: %s", what, name)
			id := caller.TraceID()
			require.Equal(t, id[:], data.DataPoints[0].Exemplars[0].TraceID)
		}
	}
}

// Measurements of untraced calls are recorded in batches. A collection must include all of them.
func TestCollectionIncludesAllMeasurements(t *testing.T) {
	t.Parallel()
	c := collect(t, otelredlatch.WithTracerProvider(noop.NewTracerProvider()))
	held := func() float64 {
		return points(t, c.metrics()["redlatch.lock.hold.duration"])["end=unlocked,kind=plain"]
	}
	end := func(times int) {
		for range times {
			c.tell.Ended(t.Context(), redlatch.Ended{Name: "a", Kind: "plain", Held: time.Millisecond, End: "unlocked"})
		}
	}
	sum := 0.0
	for _, times := range []int{1, 63, 64, 65, 200} {
		end(times)
		sum += float64(times)
		require.InDelta(t, sum, held(), 0)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() { end(1000) })
	}
	all.Wait()
	end(1)
	require.NoError(t, c.Close())
	require.InDelta(t, sum+8001, held(), 0, "including pending measurements at Close")
	end(1)
	require.InDelta(t, sum+8002, held(), 0, "including later measurements")
}
