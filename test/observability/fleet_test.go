package observability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/promredlatch"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// watchdog is the lease of the programs, which renew once a second.
const watchdog = 3 * time.Second

// fleet is a set of programs that use locks.
type fleet struct {
	server *redistest.Server
	ctx    context.Context //nolint:containedctx // canceled to stop the workers
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// startFleet starts programs with their own clients and metrics, and returns the addresses of the metrics. Each program
// encounters faults: lost holds, dead waiters, broken connections, and a key of another type.
func startFleet(t *testing.T, s *redistest.Server, n int) (addresses []string) {
	t.Helper()
	f := &fleet{server: s}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	s.Do(t, "SET", "orders:no-lock", "text")
	for i := range n {
		client, address := f.program(t, i)
		addresses = append(addresses, address)
		f.work(client)
	}
	f.wg.Add(1)
	go f.breakThings(t)
	return addresses
}

// program starts a program.
func (f *fleet) program(t *testing.T, i int) (client *redlatch.Client, address string) {
	t.Helper()
	metrics := promredlatch.New(promredlatch.WithGroup(func(name string) string {
		before, _, _ := strings.Cut(name, ":")
		return before
	}))
	client, err := redlatch.Open(t.Context(), f.server.URL(), redlatch.WithObserver(metrics.Observer()), redlatch.WithWatchdogTimeout(watchdog),
		redlatch.WithClientName(fmt.Sprintf("shop-%d", i)), redlatch.WithDeadWaiterGrace(5*time.Second))
	require.NoError(t, err)
	t.Cleanup(func() {
		f.cancel()
		f.wg.Wait()
		require.NoError(t, client.Close())
	})
	return client, serveMetrics(t, metrics)
}

func (f *fleet) work(client *redlatch.Client) {
	for range 4 {
		f.again(func() { f.use(rlock.New(client, fmt.Sprintf("orders:%d", rand.IntN(3))), 40*time.Millisecond) })
	}
	f.again(func() { f.use(rfairlock.New(client, "billing:run"), 150*time.Millisecond) })
	f.again(func() { f.use(rlock.New(client, "orders:slow"), 3*time.Second) })
	f.again(func() {
		// The first lock is usually not acquired, because breakThings has to delete it. The second is not a lock.
		_, _ = rlock.New(client, "orders:slow").TryLock(f.ctx, rlock.WithLease(time.Minute))
		_, _ = rlock.New(client, "orders:no-lock").TryLock(f.ctx)
		f.sleep(300 * time.Millisecond)
	})
}

// again calls do until the fleet ends.
func (f *fleet) again(do func()) {
	f.wg.Add(1)
	go func() {
		defer f.wg.Done()
		for f.ctx.Err() == nil {
			do()
		}
	}()
}

// use acquires a lock, works for approximately the given time, and releases the lock. It ignores losses and failures,
// which are part of the run.
func (f *fleet) use(lock *rlock.Lock, about time.Duration) {
	_ = lock.Do(f.ctx, func(ctx context.Context) error {
		f.sleep(about/2 + rand.N(about))
		return ctx.Err()
	})
	f.sleep(about / 4)
}

func (f *fleet) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-f.ctx.Done():
	}
}

// breakThings deletes a held lock every two seconds. Every six seconds it also queues a dead waiter
// and closes the programs' connections.
func (f *fleet) breakThings(t *testing.T) {
	t.Helper()
	defer f.wg.Done()
	c := f.server.Dial(t)
	for i := 0; f.ctx.Err() == nil; i++ {
		f.sleep(2 * time.Second)
		if _, err := c.Do("DEL", "orders:slow"); err != nil {
			return // the test has ended
		}
		if i%3 != 0 {
			continue
		}
		_, _ = c.Do("RPUSH", codec.QueueKey("billing:run"), codec.NewOwner(program.ClientID, int64(i)).String())
		list, err := c.Do("CLIENT", "LIST")
		text, is := list.([]byte)
		if err != nil || !is {
			return
		}
		for line := range strings.Lines(string(text)) {
			if id, _, found := strings.Cut(strings.TrimPrefix(line, "id="), " "); found && strings.Contains(line, " name=shop-") {
				_, _ = c.Do("CLIENT", "KILL", "ID", id) // the client may have disconnected
			}
		}
	}
}

// serveMetrics serves the metrics of a program and its process.
func serveMetrics(t *testing.T, all ...prom.Collector) (address string) {
	t.Helper()
	registry := prom.NewRegistry()
	registry.MustRegister(append(all, collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))...)
	srv := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

// metric is a row of a golden list.
type metric struct {
	kind   string
	labels []string
}

// known returns the metrics in the golden lists, and the metrics of other programs that are used.
func known(t *testing.T) map[string]metric {
	t.Helper()
	all := map[string]metric{"process_start_time_seconds": {kind: "gauge"}}
	for _, file := range []string{"metrics.txt", "exporter.txt"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", "observability", file))
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			f := strings.Split(line, " | ")
			require.GreaterOrEqual(t, len(f), 4, line)
			m := metric{kind: f[1], labels: strings.Fields(strings.TrimSuffix(f[3], "-"))}
			if len(m.labels) > 0 && m.labels[0] == "kind" {
				m.labels = append(m.labels, "group")
			}
			add(all, f[0], m)
		}
	}
	require.Greater(t, len(all), 25, "too few metrics: the golden lists were not found")
	return all
}

// add adds the series of a metric.
func add(all map[string]metric, name string, m metric) {
	if m.kind != "histogram" {
		all[name] = m
		return
	}
	counts := metric{kind: "counter", labels: m.labels}
	all[name+"_count"], all[name+"_sum"] = counts, counts
	all[name+"_bucket"] = metric{kind: "counter", labels: append([]string{"le"}, m.labels...)}
}

// checkExpr parses an expression and returns the number of its selectors. It checks that the metrics and labels exist,
// and that rates are only used for counters.
func checkExpr(t *testing.T, all map[string]metric, where, expr string) (selectors int) {
	t.Helper()
	e, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	require.NoError(t, err, where)
	grouped := map[string]bool{}
	parser.Inspect(e, func(node parser.Node, path []parser.Node) error {
		switch n := node.(type) {
		case *parser.AggregateExpr:
			for _, label := range n.Grouping {
				grouped[label] = true
			}
		case *parser.VectorSelector:
			selectors++
			m, there := all[n.Name]
			require.True(t, there, "%s: %s is in no golden list", where, n.Name)
			for _, matcher := range n.LabelMatchers {
				checkMatcher(t, m, where, n.Name, matcher)
			}
			checkRate(t, m, where, n.Name, path)
			for _, label := range append(m.labels, "job") {
				delete(grouped, label)
			}
		}
		return nil
	})
	require.Empty(t, grouped, "%s: label of none of its metrics", where)
	return selectors
}

func checkMatcher(t *testing.T, m metric, where, name string, matcher *labels.Matcher) {
	t.Helper()
	if matcher.Name == "__name__" || matcher.Name == "job" {
		return
	}
	require.Contains(t, m.labels, matcher.Name, "%s: unknown label of %s", where, name)
}

// checkRate checks that expressions use rates for counters and not for gauges. An alert may compare a counter with an
// earlier value to notice its first increase.
func checkRate(t *testing.T, m metric, where, name string, path []parser.Node) {
	t.Helper()
	grows, compared := false, false
	for _, above := range path {
		switch n := above.(type) {
		case *parser.Call:
			grows = grows || n.Func.Name == "rate" || n.Func.Name == "increase"
		case *parser.BinaryExpr:
			compared = compared || n.Op == parser.LUNLESS
		}
	}
	if m.kind == "counter" {
		require.True(t, grows || compared, "%s: %s is a counter: use its rate", where, name)
	} else {
		require.False(t, grows, "%s: %s is not a counter", where, name)
	}
}

func TestDashboardUsesKnownMetrics(t *testing.T) {
	t.Parallel()
	all := known(t)
	d := readDashboard(t)
	used := map[string]bool{}
	for i := range d.Panels {
		for _, target := range d.Panels[i].Targets {
			expr := filled(target.Expr, "1m", "1h")
			require.NotContains(t, expr, "$", "%s: unknown variable", d.Panels[i].Title)
			require.Positive(t, checkExpr(t, all, d.Panels[i].Title, expr))
			for _, name := range regexp.MustCompile(`redlatch_\w+`).FindAllString(expr, -1) {
				used[name] = true
			}
		}
	}
	for _, v := range d.Templating.List[1:] {
		name, _, found := strings.Cut(strings.TrimPrefix(v.Definition, "label_values("), ", job)")
		require.True(t, found, v.Definition)
		require.Contains(t, all, name, v.Name)
		used[name] = true
	}
	for name := range all {
		if !strings.HasSuffix(name, "_count") && !strings.HasSuffix(name, "_sum") && strings.HasPrefix(name, "redlatch_") {
			require.True(t, used[name], "%s is in no panel", name)
		}
	}
}
