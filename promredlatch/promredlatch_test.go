package promredlatch_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/promredlatch"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rsemaphore"
)

// observed runs body in a bubble, with an observed client for an embedded server.
func observed(t *testing.T, body func(o *observation), opts ...promredlatch.Option) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := &observation{t: t, MiniServer: redistest.Mini(t, embedded.WithInProcess()), registry: prometheus.NewPedanticRegistry()}
		m := promredlatch.New(opts...)
		o.registry.MustRegister(m)
		var err error
		o.client, err = redlatch.New(o.Server.Dial, redlatch.WithObserver(m.Observer()))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, o.client.Close()) })
		body(o)
	})
}

type observation struct {
	*redistest.MiniServer
	t        *testing.T
	client   *redlatch.Client
	registry *prometheus.Registry
}

func gather(t *testing.T, r *prometheus.Registry) map[string]*dto.MetricFamily {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	all := map[string]*dto.MetricFamily{}
	for _, f := range families {
		all[f.GetName()] = f
	}
	return all
}

// one returns the metric of a family with these labels, such as "kind=plain end=unlocked".
func one(t *testing.T, r *prometheus.Registry, name, labels string) *dto.Metric {
	t.Helper()
	want := strings.Fields(labels)
	slices.Sort(want)
	var have []string
	for _, m := range gather(t, r)[name].GetMetric() {
		var pairs []string
		for _, p := range m.GetLabel() {
			if p.GetValue() != "" {
				pairs = append(pairs, p.GetName()+"="+p.GetValue())
			}
		}
		slices.Sort(pairs)
		if slices.Equal(pairs, want) {
			return m
		}
		have = append(have, strings.Join(pairs, " "))
	}
	require.FailNow(t, "no such series", "%s{%s}, but %q", name, labels, have)
	return nil
}

func count(t *testing.T, r *prometheus.Registry, name, labels string) int {
	t.Helper()
	m := one(t, r, name, labels)
	switch {
	case m.Histogram != nil:
		return int(m.GetHistogram().GetSampleCount())
	case m.Counter != nil:
		return int(m.GetCounter().GetValue())
	}
	return int(m.GetGauge().GetValue())
}

func TestMetricsCountEvents(t *testing.T) {
	observed(t, countWhatHappens)
}

func countWhatHappens(o *observation) {
	t, registry := o.t, o.registry
	l, fair := rlock.New(o.client, "plain"), rfairlock.New(o.client, "fair")
	hold, err := l.Lock(t.Context())
	require.NoError(t, err)
	_, err = l.TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	_, err = l.Lock(t.Context(), rlock.WithWait(10*time.Millisecond))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	ctx, cancel := context.WithCancel(t.Context())
	waits := make(chan error, 1)
	go func() { _, err := l.Lock(ctx); waits <- err }()
	synctest.Wait()
	require.Equal(t, 1, count(t, registry, "redlatch_lock_waiting", "kind=plain"))
	require.Equal(t, 1, count(t, registry, "redlatch_lock_held", "kind=plain"))
	require.Positive(t, one(t, registry, "redlatch_lock_hold_oldest_age_seconds", "kind=plain").GetGauge().GetValue())
	cancel()
	require.Error(t, <-waits)
	require.NoError(t, hold.Unlock())
	require.NoError(t, fair.Do(t.Context(), func(context.Context) error { return nil }))
	require.NoError(t, rsemaphore.New(o.client, "semaphore").Release(t.Context(), 1))
	o.Do(t, "SET", l.Name(), "no lock")
	_, err = l.Lock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrWrongType)
	o.Do(t, "DEL", l.Name())
	hold, err = l.Lock(t.Context())
	require.NoError(t, err)
	o.Do(t, "DEL", l.Name())
	time.Sleep(time.Minute) // a renewal detects the loss
	require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)

	acquire := func(labels string) int { return count(t, registry, "redlatch_lock_acquire_duration_seconds", labels) }
	require.Equal(t, 2, acquire("kind=plain operation=lock outcome=acquired"))
	require.Equal(t, 1, acquire("kind=fair operation=lock outcome=acquired"))
	require.Equal(t, 1, acquire("kind=plain operation=try-lock outcome=refused"))
	require.Equal(t, 1, acquire("kind=plain operation=lock outcome=refused"))
	require.Equal(t, 1, acquire("kind=plain operation=lock outcome=canceled"))
	require.Equal(t, 1, acquire("kind=plain operation=lock outcome=failed error_type=wrong_type"))
	require.Equal(t, 1, count(t, registry, "redlatch_lock_hold_duration_seconds", "kind=plain end=unlocked"))
	require.Equal(t, 1, count(t, registry, "redlatch_lock_hold_duration_seconds", "kind=plain end=lost"))
	require.Equal(t, 1, count(t, registry, "redlatch_lock_lost_total", "kind=plain reason=gone"))
	require.Positive(t, count(t, registry, "redlatch_renewal_duration_seconds", ""))
	require.Zero(t, count(t, registry, "redlatch_lock_held", "kind=plain"))
	require.Zero(t, count(t, registry, "redlatch_lock_waiting", "kind=plain"))
	require.Zero(t, count(t, registry, "redlatch_lock_held", "kind=fair"), "the gauge stays")
}

// everything gives each metric a value.
func everything(t *testing.T, m *promredlatch.Metrics) {
	t.Helper()
	ctx, o := t.Context(), m.Observer()
	o.Started(ctx, redlatch.Started{Op: "lock", Name: "a", Kind: "plain", Locks: 1})
	o.Acquired(ctx, redlatch.Acquired{Op: "lock", Name: "a", Kind: "plain", Wait: time.Millisecond})
	o.Ended(ctx, redlatch.Ended{Name: "a", Kind: "plain", End: "lost", LossReason: "late", Err: redlatch.LossNotRenewed})
	o.Woken(ctx, redlatch.Woken{Name: "a", Kind: "plain", By: "gap"})
	o.Woken(ctx, redlatch.Woken{Name: "a", Kind: "plain", By: "message"})
	o.Renewed(redlatch.Renewed{Holds: 1, Slack: time.Second})
	o.Evicted(redlatch.Evicted{Name: "a", Kind: "fair"})
	o.Reconnected(redlatch.Reconnected{Connection: "commands"})
}

// The golden list names each metric, its type and its labels.
func TestMetricsMatchGoldenList(t *testing.T) {
	t.Parallel()
	for _, grouped := range []bool{false, true} {
		var opts []promredlatch.Option
		if grouped {
			opts = append(opts, promredlatch.WithGroup(func(string) string { return "g" }))
		}
		m := promredlatch.New(opts...)
		everything(t, m)
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(m)
		var have []string
		for name, f := range gather(t, registry) {
			labels := []string{}
			for _, p := range f.GetMetric()[0].GetLabel() {
				if p.GetName() == "group" {
					require.True(t, grouped)
				} else {
					labels = append(labels, p.GetName())
				}
			}
			if len(labels) == 0 {
				labels = append(labels, "-")
			}
			slices.Sort(labels)
			have = append(have, fmt.Sprintf("%s | %s | %s", name, strings.ToLower(f.GetType().String()), strings.Join(labels, " ")))
		}
		slices.Sort(have)
		require.Equal(t, golden(t), have)
	}
	problems, err := testutil.CollectAndLint(promredlatch.New())
	require.NoError(t, err)
	require.Empty(t, problems)
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
		list = append(list, fmt.Sprintf("%s | %s | %s", f[0], f[1], strings.Join(labels, " ")))
	}
	slices.Sort(list)
	require.Greater(t, len(list), 10, "the list was not found: the check itself is broken")
	return list
}

// Prometheus does not see an increase in a series that starts at 1, so it would miss the first
// loss.
func TestFailureCountersStartAtZero(t *testing.T) {
	t.Parallel()
	m := promredlatch.New()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	m.Observer().Started(t.Context(), redlatch.Started{Op: "lock", Name: "orders", Kind: "plain", Locks: 1})
	zeros := map[string]int{}
	for _, f := range gather(t, registry) {
		for _, one := range f.GetMetric() {
			if c := one.GetCounter(); c != nil {
				require.Zero(t, c.GetValue(), f.GetName())
				zeros[f.GetName()]++
			}
		}
	}
	require.Equal(t, map[string]int{
		"redlatch_lock_lost_total": 2, "redlatch_waiter_evicted_total": 1,
		"redlatch_subscription_gaps_total": 1, "redlatch_connection_reconnects_total": 1,
	}, zeros)
}

func TestManyNamesProduceFewSeries(t *testing.T) {
	t.Parallel()
	for what, opts := range map[string][]promredlatch.Option{
		"no groups":          nil,
		"a few":              {promredlatch.WithGroup(func(name string) string { return name[:1] })},
		"one group per name": {promredlatch.WithGroup(func(name string) string { return name })},
		"groups of no UTF-8": {promredlatch.WithGroup(func(name string) string { return "\xff" + name })},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			m := promredlatch.New(opts...)
			everything(t, m)
			ctx, o := t.Context(), m.Observer()
			names := 5000 // far more than the limit of groups
			if opts == nil {
				names = 100_000
			}
			for i := range names {
				name := fmt.Sprint(i)
				o.Started(ctx, redlatch.Started{Op: "lock", Name: name, Kind: "plain", Locks: 1})
				o.Acquired(ctx, redlatch.Acquired{Op: "lock", Name: name, Kind: "plain"})
				o.Ended(ctx, redlatch.Ended{Name: name, Kind: "plain", End: "unlocked"})
			}
			registry := prometheus.NewPedanticRegistry()
			registry.MustRegister(m)
			series := 0
			for _, f := range gather(t, registry) {
				series += len(f.GetMetric())
			}
			require.Less(t, series, 10*(100+3)) // three gauges, two histograms, four counters
			if opts == nil {
				require.Less(t, series, 20)
			}
		})
	}
}

func TestHistogramsHaveCallerExemplars(t *testing.T) {
	t.Parallel()
	type traced struct{}
	m := promredlatch.New(promredlatch.WithExemplars(func(ctx context.Context) prometheus.Labels {
		id, _ := ctx.Value(traced{}).(string)
		if id == "" {
			return nil
		}
		return prometheus.Labels{"trace_id": id}
	}))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(m)
	for _, id := range []string{"", "4bf92f3577b34da6a3ce929d0e0e4736", strings.Repeat("x", 200)} {
		ctx := context.WithValue(t.Context(), traced{}, id)
		m.Observer().Acquired(ctx, redlatch.Acquired{Op: "lock", Name: "job", Kind: "plain"})
		m.Observer().Ended(ctx, redlatch.Ended{Name: "job", Kind: "plain", End: "unlocked"})
	}
	for name, labels := range map[string]string{
		"redlatch_lock_acquire_duration_seconds": "kind=plain operation=lock outcome=acquired",
		"redlatch_lock_hold_duration_seconds":    "kind=plain end=unlocked",
	} {
		var ids []string
		m := one(t, registry, name, labels)
		require.EqualValues(t, 3, m.GetHistogram().GetSampleCount())
		for _, b := range m.GetHistogram().GetBucket() {
			if e := b.GetExemplar(); e != nil {
				ids = append(ids, e.GetLabel()[0].GetValue())
			}
		}
		require.Equal(t, []string{"4bf92f3577b34da6a3ce929d0e0e4736"}, ids)
	}
}

// Prometheus panics on such an exemplar, and later observations would not be counted.
func TestInvalidUTF8ExemplarKeepsLoss(t *testing.T) {
	t.Parallel()
	for _, labels := range []prometheus.Labels{{"trace_id": "\xff"}, {"\xff": "1"}, {"": "1"}, {"trace_id": strings.Repeat("x", 200)}} {
		m := promredlatch.New(promredlatch.WithExemplars(func(context.Context) prometheus.Labels { return labels }))
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(m)
		require.NotPanics(t, func() {
			m.Observer().Ended(t.Context(), redlatch.Ended{Name: "job", Kind: "plain", End: "lost", LossReason: "gone", Err: redlatch.ErrLost})
		}, "%q", labels)
		require.Equal(t, 1, count(t, registry, "redlatch_lock_hold_duration_seconds", "kind=plain end=lost"))
	}
}

func TestClosedClientIsRemoved(t *testing.T) {
	observed(t, func(o *observation) {
		t := o.t
		_, err := rlock.New(o.client, "job").Lock(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, count(t, o.registry, "redlatch_lock_held", "kind=plain"))
		require.NoError(t, o.client.Close())
		require.Zero(t, count(t, o.registry, "redlatch_lock_held", "kind=plain"))
		require.Equal(t, 1, count(t, o.registry, "redlatch_lock_hold_duration_seconds", "kind=plain end=closed"))
	})
}

// The cost of reporting an uncontended pair.
func BenchmarkPair(b *testing.B) {
	o := promredlatch.New().Observer()
	b.ReportAllocs()
	for b.Loop() {
		ctx := o.Started(b.Context(), redlatch.Started{Op: "lock", Name: "orders:42", Kind: "plain", Locks: 1})
		ctx = o.Acquired(ctx, redlatch.Acquired{Op: "lock", Name: "orders:42", Kind: "plain", Wait: time.Millisecond, Attempts: 1})
		o.Ended(ctx, redlatch.Ended{Name: "orders:42", Kind: "plain", Held: time.Millisecond, End: "unlocked"})
	}
}

func TestMain(m *testing.M) { redistest.Main(m) }
