package exporter

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

// start starts the exporter, and returns it and its address.
func start(t *testing.T, redis string, args ...string) (p *program.Process, base string) {
	t.Helper()
	p = program.Start(t, redis, append([]string{"exporter", "--listen", "127.0.0.1:0"}, args...)...)
	base, found := strings.CutSuffix(p.Line(), "/metrics")
	require.True(t, found, "it does not print its address")
	return p, base
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	resp, err := http.Get(url) //nolint:noctx // the test's own server
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, string(text)
}

// scrape returns all series.
func scrape(t *testing.T, base string) map[string]float64 {
	t.Helper()
	status, body := get(t, base+"/metrics")
	require.Equal(t, http.StatusOK, status)
	return seriesOf(t, body)
}

func seriesOf(t *testing.T, body string) map[string]float64 {
	t.Helper()
	series := map[string]float64{}
	for line := range strings.Lines(body) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		line = strings.TrimSpace(line)
		at := strings.LastIndexByte(line, ' ')
		require.Positive(t, at, line)
		name, number := line[:at], line[at+1:]
		require.NotContains(t, series, name, "it is there twice")
		value, err := strconv.ParseFloat(number, 64)
		require.NoError(t, err, line)
		series[name] = value
	}
	return series
}

// observer returns a function that looks at a server once, and returns the series.
func observer(t *testing.T, url string, match ...string) (look func() map[string]float64) {
	t.Helper()
	srv, err := connect.New(connect.Settings{Address: url})
	require.NoError(t, err)
	groups, err := parseGroups(match)
	require.NoError(t, err)
	e := &exporter{every: time.Hour, collector: collector{server: srv, by: groups}}
	return func() map[string]float64 {
		t.Helper()
		found, notCounted, err := e.collector.look(t.Context())
		require.NoError(t, err)
		e.take(found, notCounted == nil, nil)
		w := httptest.NewRecorder()
		e.handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		return seriesOf(t, w.Body.String())
	}
}

// looks returns the series after n more successful looks.
func looks(t *testing.T, base string, n float64) map[string]float64 {
	t.Helper()
	const ok = `redlatch_exporter_looks_total{outcome="ok"}`
	want := scrape(t, base)[ok] + n
	var series map[string]float64
	require.Eventually(t, func() bool {
		series = scrape(t, base)
		return series[ok] >= want
	}, time.Minute, 100*time.Millisecond) // for a slow machine
	return series
}

func addLocks(t *testing.T, s *redistest.Server) {
	t.Helper()
	s.Do(t, "HSET", "orders:1", program.SomeOwner, 1)
	s.Do(t, "PEXPIRE", "orders:1", time.Hour.Milliseconds())
	s.Do(t, "HSET", "orders:2", program.RedissonOwner, 1) // without a lease
	s.Do(t, "HSET", "orders:3", program.RedissonOwner, 1)
	s.Do(t, "PEXPIRE", "orders:3", time.Hour.Milliseconds())
	for i := range 3 {
		program.Enqueue(t, s, "orders:3", program.LongOwner(i), time.Hour)
	}
	program.Listen(t, s, "orders:3", program.LongOwner(0))
	program.Enqueue(t, s, "bill", program.RedissonOwner, time.Hour) // free, with a queue
	s.Do(t, "HSET", "books", "mode", "read", program.RedissonOwner, 1, program.SomeOwner, 2)
	s.Do(t, "HSET", "user:1", "name", "Ada")
	s.Do(t, "SET", "counter", 1)
	program.Subscribe(t, s, codec.LockChannel("orders:1"), protocol.ReadWriteChannel("books"))
}

func TestMetricsMatchLocks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	addLocks(t, s)
	look := observer(t, s.URL(), "orders=orders:*", "rest=books", "rest=bill*")
	look()
	series := look()
	for name, want := range map[string]float64{
		`redlatch_server_locks_held{group="orders",kind="plain"}`:   2,
		`redlatch_server_locks_held{group="orders",kind="fair"}`:    1,
		`redlatch_server_locks_held{group="rest",kind="readwrite"}`: 1,
		`redlatch_server_locks_held{group="other",kind="plain"}`:    0,
		`redlatch_server_locks_without_ttl{group="orders"}`:         1,
		`redlatch_server_locks_stuck{group="rest"}`:                 1,
		`redlatch_server_queue_length{group="orders"}`:              3,
		`redlatch_server_queue_longest{group="orders"}`:             3,
		`redlatch_server_queue_length{group="rest"}`:                1,
		`redlatch_server_waiters_dead{group="orders"}`:              2,
		`redlatch_server_waiters_dead{group="rest"}`:                1,
		`redlatch_server_waiting_connections{group="orders"}`:       1,
		`redlatch_server_waiting_connections{group="rest"}`:         1,
		`redlatch_server_holds_seen_total{group="orders"}`:          0,
		`redlatch_server_hold_oldest_age_seconds{group="other"}`:    0,
		`redlatch_exporter_up`:                                      1,
		`redlatch_exporter_keys`:                                    7, // six hashes and queues of locks, and another hash
		`redlatch_exporter_keys_unreadable`:                         0,
		`redlatch_exporter_waiters_unchecked`:                       0,
		`redlatch_exporter_looks_total{outcome="error"}`:            0,
	} {
		require.Contains(t, series, name)
		require.InDelta(t, want, series[name], 0, name)
	}
	require.Positive(t, series[`redlatch_server_hold_oldest_age_seconds{group="orders"}`])

	s.Do(t, "DEL", "orders:1")
	s.Do(t, "HSET", "orders:1", program.RedissonOwner, 1)
	s.Do(t, "HSET", "new", program.RedissonOwner, 1)
	series = look()
	require.InDelta(t, 1, series[`redlatch_server_holds_seen_total{group="orders"}`], 0)
	require.InDelta(t, 1, series[`redlatch_server_holds_seen_total{group="other"}`], 0)
	require.InDelta(t, 0, series[`redlatch_server_locks_mixed{group="rest"}`], 0)

	program.Subscribe(t, s, codec.LockChannel("books"))
	require.InDelta(t, 1, look()[`redlatch_server_locks_mixed{group="rest"}`], 0)
}

func TestDeadlockedLocksAreCounted(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	other := program.LongOwner(1)
	for name, owners := range map[string][2]string{"a": {program.RedissonOwner, other}, "b": {other, program.RedissonOwner}} {
		s.Do(t, "HSET", name, owners[0], 1)
		program.Enqueue(t, s, name, owners[1], time.Hour)
		program.Listen(t, s, name, owners[1])
	}
	look := observer(t, s.URL(), "one=a")
	series := look()
	require.InDelta(t, 1, series[`redlatch_server_locks_deadlocked{group="one"}`], 0)
	require.InDelta(t, 1, series[`redlatch_server_locks_deadlocked{group="other"}`], 0)
	s.Do(t, "HSET", "a", other, 1)
	s.Do(t, "HDEL", "a", program.RedissonOwner)
	require.InDelta(t, 0, look()[`redlatch_server_locks_deadlocked{group="one"}`], 0)
}

func TestOldestHoldNamesHolder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const info = `redlatch_server_hold_oldest_info{group="all",holder="`
	look := observer(t, s.URL())
	for series := range look() {
		require.NotContains(t, series, info, "nothing is held")
	}
	s.Do(t, "HSET", "job", program.SomeOwner, 1)
	require.Contains(t, look(), info+`Redlatch 00000001"}`, "not the number, which each acquisition increases")
	holder, err := codec.ParseOwner(program.SomeOwner)
	require.NoError(t, err)
	s.Do(t, "SET", engine.LabelKey(holder.Client()), program.LabelText)
	s.Do(t, "HSET", "newer", program.RedissonOwner, 1)
	require.Contains(t, look(), info+program.LabelText+`"}`)
	s.Do(t, "SET", engine.LabelKey(holder.Client()), "a\"\n")
	require.Contains(t, look(), info+`\"a\\\"\\n\""}`)
}

func TestInvalidWaiterNamesKeepOtherMetrics(t *testing.T) {
	t.Parallel()
	s, c := redistest.Start(t), redistest.StartCluster(t, 1, 0) // with one master, which has both of a lock's keys
	program.Enqueue(t, s, "\xff", program.RedissonOwner, time.Hour)
	for _, name := range []string{"a}b", "good"} {
		c.DoAt(t, codec.QueueKey(name), "RPUSH", codec.QueueKey(name), program.RedissonOwner)
	}
	for url, want := range map[string]struct{ queued, unchecked float64 }{s.URL(): {1, 0}, "redis-cluster://" + c.Addrs()[0]: {2, 1}} {
		look := observer(t, url)
		look()
		series := look()
		require.InDelta(t, want.queued, series[`redlatch_server_queue_length{group="all"}`], 0)
		require.InDelta(t, 1, series[`redlatch_server_waiters_dead{group="all"}`], 0)
		require.InDelta(t, want.unchecked, series[`redlatch_exporter_waiters_unchecked`], 0)
	}
}

func TestServedMetricsMatchGoldenList(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../../docs/observability/exporter.txt")
	require.NoError(t, err)
	want := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if f := strings.Split(strings.TrimSpace(line), " | "); strings.HasPrefix(line, "redlatch_") {
			want[f[0]] = f[1] + " " + f[3]
		}
	}
	s := redistest.Start(t)
	addLocks(t, s)
	_, base := start(t, s.URL(), "--every", "1s")
	looks(t, base, 1)
	_, body := get(t, base+"/metrics")
	have, kind := map[string]string{}, ""
	for line := range strings.Lines(body) {
		f := strings.Fields(line)
		switch {
		case f[0] == "#" && f[1] == "TYPE":
			kind = f[3]
		case f[0] != "#":
			name, rest, labelled := strings.Cut(f[0], "{")
			labels := "-"
			if labelled {
				var names []string
				for pair := range strings.SplitSeq(strings.TrimSuffix(rest, "}"), ",") {
					label, _, _ := strings.Cut(pair, "=")
					names = append(names, label)
				}
				labels = strings.Join(names, " ")
			}
			have[name] = kind + " " + labels
		}
	}
	delete(want, "redlatch_server_hold_oldest_info") // for older holds
	require.Equal(t, want, have)
}

func TestWaitersSubscribedOnReplicaAreNotDead(t *testing.T) {
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	program.Enqueue(t, master, "job", program.LongOwner(0), time.Hour)
	program.Enqueue(t, master, "job", program.LongOwner(1), time.Hour)
	program.Listen(t, replica, "job", program.LongOwner(0))
	look := observer(t, master.URL())
	const dead = `redlatch_server_waiters_dead{group="all"}`
	require.InDelta(t, 0, look()[dead], 0)
	require.InDelta(t, 1, look()[dead], 0)
	program.Enqueue(t, master, "job", program.LongOwner(2), time.Hour)
	require.InDelta(t, 1, look()[dead], 0, "one look is not enough")
	require.InDelta(t, 2, look()[dead], 0)
}

func TestPauseAfterFailedScanIsShort(t *testing.T) {
	t.Parallel()
	require.Equal(t, 28*time.Second, pause(time.Second, 7*time.Second, 7*time.Second))
	require.Equal(t, time.Second, pause(time.Second, 7*time.Second, 0), "the server was frozen")
	require.Equal(t, 14*time.Second, pause(15*time.Second, time.Second, 0))
	require.Equal(t, 240*time.Second, pause(15*time.Second, 65*time.Second, 60*time.Second), "the last master was frozen")
}

func TestStaleMetricsAreOmitted(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "job", program.SomeOwner, 1)
	p, base := start(t, s.URL(), "--every", "1s")
	const held = `redlatch_server_locks_held{group="all",kind="plain"}`
	series := looks(t, base, 1)
	require.InDelta(t, 1, series[held], 0)
	require.InDelta(t, 1, series["redlatch_exporter_up"], 0)
	status, body := get(t, base+"/healthz")
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "ok\n", body)

	s.Shutdown()
	require.Eventually(t, func() bool { return scrape(t, base)["redlatch_exporter_up"] == 0 }, program.Soon, 20*time.Millisecond)
	require.Eventually(t, func() bool {
		_, there := scrape(t, base)[held]
		return !there
	}, program.Soon, 20*time.Millisecond)
	series = scrape(t, base)
	require.Positive(t, series[`redlatch_exporter_looks_total{outcome="error"}`])
	require.Greater(t, series[`redlatch_exporter_figures_age_seconds`], 3.0)
	status, body = get(t, base+"/healthz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "the metrics are stale\n", body)

	s.Restart()
	s.Do(t, "HSET", "job", program.SomeOwner, 1)
	require.InDelta(t, 1, looks(t, base, 2)[held], 0) // the first look may have begun before the lock existed
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTERM))
	got := p.Outcome(program.Soon)
	require.Equal(t, 143, got.Code)
	lines := strings.Split(strings.TrimSpace(got.Stderr), "\n")
	require.Contains(t, lines[0], "redlatch: cannot reach Redis at ")
	require.Equal(t, "redlatch: scans are complete again", lines[len(lines)-1])
}

func TestExporterServesWithoutRedis(t *testing.T) {
	t.Parallel()
	p, base := start(t, program.NoServer(t), "--every", "1s")
	require.Eventually(t, func() bool { return scrape(t, base)[`redlatch_exporter_looks_total{outcome="error"}`] > 1 }, program.Soon, 20*time.Millisecond)
	require.NotContains(t, scrape(t, base), "redlatch_exporter_figures_age_seconds")
	status, body := get(t, base+"/healthz")
	require.Equal(t, http.StatusServiceUnavailable, status)
	require.Equal(t, "no scan has succeeded yet\n", body)
	status, body = get(t, base+"/")
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, body, "/metrics")
	status, _ = get(t, base+"/else")
	require.Equal(t, http.StatusNotFound, status)
	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
	got := p.Outcome(program.Soon)
	require.Equal(t, program.CodeInterrupted, got.Code)
	program.OneLine(t, got.Stderr) // each problem is printed once
	require.NotContains(t, got.Stderr, "sesame")
}

func TestDocumentedUserCanExportAndOthersSeeMissingRights(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	onlooker := s.GiveLooks(t)
	s.Do(t, "HSET", "app:job", program.SomeOwner, 1)
	s.Do(t, "HSET", "secret", program.SomeOwner, 1)
	program.Enqueue(t, s, "app:job", program.RedissonOwner, time.Hour)
	_, base := start(t, onlooker, "--every", "1s")
	series := looks(t, base, 2)
	require.InDelta(t, 1, series[`redlatch_server_locks_held{group="all",kind="fair"}`], 0)
	require.InDelta(t, 1, series[`redlatch_server_waiters_dead{group="all"}`], 0)
	require.InDelta(t, 1, series[`redlatch_exporter_keys_unreadable`], 0)

	s.Do(t, "ACL", "SETUSER", "blind", "reset", "on", ">password", "+@all", "-pubsub", "~*", "&*")
	p, base := start(t, s.UserURL("blind"), "--every", "1s")
	series = looks(t, base, 2)
	require.NotContains(t, series, `redlatch_server_waiters_dead{group="all"}`)
	require.InDelta(t, 1, series[`redlatch_exporter_waiters_unchecked`], 0)
	require.NoError(t, p.Cmd.Process.Signal(os.Interrupt))
	got := p.Outcome(program.Soon)
	program.OneLine(t, got.Stderr)
	require.Contains(t, got.Stderr, "redlatch_server_waiters_dead is omitted: cannot count subscribers: ")
}

func TestInvalidExportSettingIsError(t *testing.T) {
	t.Parallel()
	for flags, says := range map[string]string{
		"--every 10ms":         "--every must be from 1s to 24h",
		"--every 25h":          "--every must be from 1s to 24h",
		"--listen=":            "--listen must be host:port, or :port for all interfaces",
		"--match orders":       "--match: orders must have the form GROUP=PATTERN",
		"--match other=x*":     "--match: other is reserved for locks that match no pattern: choose another name",
		"--match a{b=x*":       "--match: a{b is not a valid group name: use up to 63 letters, digits, and . _ -",
		"--listen 256.0.0.1:x": "cannot listen on 256.0.0.1:x: ",
	} {
		got := program.Finish(t, program.NoServer(t), append([]string{"exporter"}, strings.Fields(flags)...)...)
		code := 2
		if strings.HasPrefix(says, "cannot listen") {
			code = 1
		}
		require.Equal(t, code, got.Code, flags)
		program.OneLine(t, got.Stderr)
		require.Contains(t, got.Stderr, says, flags)
	}
	many := []string{"exporter"}
	for i := range 101 {
		many = append(many, "--match", fmt.Sprintf("g%d=x%d", i, i))
	}
	require.Contains(t, program.Finish(t, program.NoServer(t), many...).Stderr, "101 groups exceed the maximum of 100")
}
