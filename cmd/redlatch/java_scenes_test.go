package main

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

func (f *fixture) testListAndStatus(t *testing.T) {
	t.Helper()
	f.addLocks(t)
	t.Run("list", f.testList)
	t.Run("status", f.testStatus)
}

func (f *fixture) testList(t *testing.T) {
	t.Helper()
	t.Parallel()
	f.checkOutput(t, "list", program.OK(t, f.server.URL(), "list"))

	lines := strings.Split(strings.TrimSpace(program.OK(t, f.server.URL(), "list", "--json")), "\n")
	slices.Sort(lines) // in the order found
	f.checkOutput(t, "list.json", strings.Join(lines, "\n")+"\n")
}

func (f *fixture) testStatus(t *testing.T) {
	t.Helper()
	t.Parallel()
	for _, name := range []string{"orders:42", "nightly-report", "billing-run", "stuck", "books"} {
		out := program.OK(t, f.server.URL(), "status", name)
		file := "status-" + strings.ReplaceAll(name, ":", "-")
		f.checkOutput(t, file, out)
		got := program.Finish(t, f.server.URL(), "status", "--json", name)
		f.checkOutput(t, file+".json", firstFor.ReplaceAllString(got.Stdout, `"$1": 1000`))
	}
}

func (f *fixture) testRenewals(t *testing.T) {
	t.Helper()
	f.java.lock(t, "plain", "renewed", 0)
	f.java.lock(t, "plain", "fixed", 30*time.Second)
	_, err := rlock.New(f.client, "ours").Lock(t.Context(), rlock.WithWatchdog(6*time.Second))
	require.NoError(t, err)
	fixed := program.Start(t, f.server.URL(), "status", "--for", "15s", "fixed")
	renewed := program.Start(t, f.server.URL(), "status", "--for", "15s", "renewed")
	got := program.Finish(t, f.server.URL(), "status", "--for", "10s", "ours")
	require.Regexp(t, `\n  lease  \S+ left, renewed\n`, got.Stdout)
	require.Regexp(t, `\n  lease  \S+ left, renewed\n`, renewed.Outcome(2*program.Soon).Stdout)
	require.Regexp(t, `\n  lease  \S+ left, not renewed when due: fixed, or the holder is gone\n`,
		fixed.Outcome(2*program.Soon).Stdout)
}

func (f *fixture) testWatch(t *testing.T) {
	t.Helper()
	const name = "nightly-report"
	f.java.lock(t, "plain", name, time.Hour)
	people := program.Start(t, f.server.URL(), "watch", name)
	programs := program.Start(t, f.server.URL(), "watch", "--json", "night*")
	var reported, lines []string
	next := func() {
		reported = append(reported, people.Line())
		lines = append(lines, programs.Line())
	}
	next()
	got := make(chan *rlock.Hold, 1)
	go func() {
		hold, err := rlock.New(f.client, name).Lock(t.Context(), rlock.WithLease(time.Hour))
		if err != nil {
			hold = nil
		}
		got <- hold
	}()
	require.Eventually(t, func() bool {
		return slices.Contains(f.server.Channels(t), codec.LockChannel(name))
	}, program.Soon, 10*time.Millisecond)
	f.java.unlock(t, "plain", name)
	hold := <-got
	require.NotNil(t, hold)
	require.Contains(t, program.AwaitPassed(people), "Redlatch 000000aa:")
	require.Contains(t, program.AwaitPassed(programs), hold.Owner().String())
	require.NoError(t, hold.Unlock())
	next()
	f.java.lock(t, "plain", name, 3*time.Second)
	next()
	next()
	f.checkOutput(t, "watch", strings.Join(reported, "\n")+"\n")
	f.checkOutput(t, "watch.json", strings.Join(lines, "\n")+"\n")
	require.NoError(t, people.Cmd.Process.Signal(program.Interrupt))
	require.Equal(t, program.Outcome{Code: program.CodeInterrupted, Stdout: "", Stderr: ""}, people.Outcome(program.Soon))
}

func (f *fixture) testWatchFair(t *testing.T) {
	t.Helper()
	const name = "billing-run"
	f.java.lock(t, "fair", name, 9*time.Minute)
	people := program.Start(t, f.server.URL(), "watch", "--for", "60s", "bill*")
	programs := program.Start(t, f.server.URL(), "watch", "--for", "60s", "--json", "bill*")
	reported, lines := []string{people.Line()}, []string{programs.Line()}
	waiter := f.java.begin(peer.Command{"op": "lock", "kind": "fair", "name": name, "thread": "second", "lease": time.Hour.Milliseconds()})
	reported = append(reported, program.ToEvent(people, "queued")...)
	lines = append(lines, program.ToEvent(programs, "queued")...)
	f.java.unlock(t, "fair", name)
	_, err := waiter.Wait(program.Soon)
	require.NoError(t, err)
	number := numberOf(t, reported[len(reported)-1])
	waiting := fmt.Sprintf("Redisson %s:%s", f.java.id[28:], number)
	reported, lines = append(reported, people.Line()), append(lines, programs.Line())
	require.Contains(t, reported[len(reported)-1], "woken     "+waiting)
	require.Contains(t, program.AwaitPassed(people), waiting)
	require.Contains(t, program.AwaitPassed(programs), f.java.id+":"+number)
	f.java.do(t, peer.Command{"op": "unlock", "kind": "fair", "name": name, "thread": "second"})
	reported, lines = append(reported, people.Line()), append(lines, programs.Line())
	f.checkOutput(t, "watch-fair", strings.Join(reported, "\n")+"\n")
	f.checkOutput(t, "watch-fair.json", strings.Join(lines, "\n")+"\n")
}

func (f *fixture) testRun(t *testing.T) {
	t.Helper()
	f.java.lock(t, "plain", "nightly-report", time.Hour)
	_, err := rlock.New(f.client, "orders:42").Lock(t.Context(), rlock.WithLease(time.Hour))
	require.NoError(t, err)
	said := ""
	for _, name := range []string{"nightly-report", "orders:42"} {
		got := program.Finish(t, f.server.URL(), "run", "--try", name, "--", "echo", "never")
		require.Equal(t, 124, got.Code, got.Stderr)
		require.Empty(t, got.Stdout)
		said += got.Stderr
	}
	program.Golden(t, "run-held", said)
}

func numberOf(t *testing.T, line string) string {
	t.Helper()
	m := regexp.MustCompile(`Redisson [0-9a-f]{8}:(\d+)`).FindStringSubmatch(line)
	require.NotNil(t, m, line)
	return m[1]
}

// firstFor matches durations of observation.
var firstFor = regexp.MustCompile(`"(first_for_ms|no_subscriber_for_ms)": \d+`)

// unlockWatchdog is short, so that renewals are soon seen, and outlasts the later looks.
const unlockWatchdog = 18 * time.Second

// testUnlock distinguishes locks of live holders from those of a dead Java process.
func (f *fixture) testUnlock(t *testing.T) {
	t.Helper()
	p := startJava(t, javaRelease)
	doomed := f.newJava(t, p, peer.Command{"watchdog": unlockWatchdog.Milliseconds()})
	doomed.lock(t, "plain", "orders:42", 0)
	doomed.lock(t, "plain", "nightly-report", 0)
	_, err := rlock.New(f.client, "books").Lock(t.Context(), rlock.WithWatchdog(unlockWatchdog))
	require.NoError(t, err)
	owners, err := redis.Strings(f.server.Do(t, "HKEYS", "orders:42"), nil)
	require.NoError(t, err)
	require.Len(t, owners, 1)
	dead := []string{"unlock", "--force", "--dead", owners[0]}

	alive := map[string]*program.Process{
		"unlock-alive":      program.Start(t, f.server.URL(), append(dead, "orders:42")...),
		"unlock-alive.json": program.Start(t, f.server.URL(), "unlock", "--force", "--json", "orders:42"),
		"unlock-ours":       program.Start(t, f.server.URL(), "unlock", "--force", "books"),
		"unlock-ours.json":  program.Start(t, f.server.URL(), "unlock", "--force", "--json", "books"),
	}
	for file, p := range alive {
		got := p.Outcome(2 * program.Soon)
		require.Equal(t, 2, got.Code, got.Stderr)
		require.Contains(t, got.Stderr, "its holder is alive")
		f.checkOutput(t, file, got.Stdout)
	}

	doomed.lock(t, "read", "ledger", time.Hour)
	p.Halt()
	f.takesDeadReader(t, doomed.id, "ledger")
	gone := map[string]*program.Process{
		"unlock-dead":      program.Start(t, f.server.URL(), append(dead, "orders:42")...),
		"unlock-dead.json": program.Start(t, f.server.URL(), append(dead, "--json", "nightly-report")...),
	}
	for file, p := range gone {
		got := p.Outcome(2 * program.Soon)
		require.Equal(t, 0, got.Code, got.Stderr)
		f.checkOutput(t, file, got.Stdout)
	}
	for _, name := range []string{"orders:42", "nightly-report"} {
		require.False(t, program.Exists(t, f.server, name))
		require.Equal(t, 0, program.Finish(t, f.server.URL(), "run", "--try", name, "--", "true").Code)
	}
}

// takesDeadReader takes a lock from a dead reader. The live readers keep it, and then a writer gets
// it.
func (f *fixture) takesDeadReader(t *testing.T, id, name string) {
	t.Helper()
	keys, err := redis.Strings(f.server.Do(t, "HKEYS", name), nil)
	require.NoError(t, err)
	dead := slices.IndexFunc(keys, func(key string) bool { return strings.HasPrefix(key, id) })
	require.GreaterOrEqual(t, dead, 0)
	f.java.lock(t, "read", name, 0)
	ours, err := rreadwritelock.New(f.client, name).Read().Lock(t.Context())
	require.NoError(t, err)
	writer := f.java.begin(peer.Command{"op": "lock", "kind": "write", "name": name, "thread": "writer"})
	require.Eventually(t, func() bool {
		n, _ := f.server.Do(t, "PUBSUB", "NUMSUB", codec.ReadWriteChannel(name)).([]any)
		return len(n) == 2 && n[1] == int64(1)
	}, program.Soon, 10*time.Millisecond)

	require.Contains(t, program.OK(t, f.server.URL(), "unlock", "--force", "--for", "10ms", "--dead", keys[dead], name), "was taken from 1 of its 3 holders\n")
	left, err := redis.Strings(f.server.Do(t, "HKEYS", name), nil)
	require.NoError(t, err)
	require.Len(t, left, 3)
	require.NotContains(t, left, keys[dead])
	require.NoError(t, ours.Unlock())
	f.java.unlock(t, "read", name)
	_, err = writer.Wait(program.Soon)
	require.NoError(t, err)
}

const exported = 10_000

func (f *fixture) testExporter(t *testing.T) {
	t.Helper()
	began := time.Now()
	var calls []*peer.Call
	for i := range exported {
		calls = append(calls, f.java.begin(peer.Command{
			"op": "lock", "kind": "plain", "name": fmt.Sprintf("java:%d", i), "lease": time.Hour.Milliseconds(),
		}))
		_, err := rlock.New(f.client, fmt.Sprintf("go:%d", i)).Lock(t.Context(), rlock.WithLease(time.Hour))
		require.NoError(t, err)
	}
	for _, call := range calls {
		_, err := call.Wait(time.Minute)
		require.NoError(t, err)
	}
	t.Logf("%d locks took %v", 2*exported, time.Since(began))
	// A fair lock with two queued threads, and a plain lock with a waiter.
	f.java.lock(t, "fair", "billing-run", time.Hour)
	for i := range 2 {
		f.java.begin(peer.Command{"op": "lock", "kind": "fair", "name": "billing-run", "thread": fmt.Sprint("waits", i)})
	}
	f.java.begin(peer.Command{"op": "lock", "kind": "plain", "name": "go:0", "thread": "plain waiter"})
	for name, kind := range map[string]string{"books": "read", "ledger": "write"} {
		f.java.do(t, peer.Command{"op": "lock", "kind": kind, "name": name, "lease": time.Hour.Milliseconds()})
	}
	require.Eventually(t, func() bool {
		channels := f.server.Channels(t)
		return f.server.Do(t, "LLEN", codec.QueueKey("billing-run")) == int64(2) && strings.Contains(fmt.Sprint(channels), codec.LockChannel("go:0"))
	}, program.Soon, 10*time.Millisecond)

	slow := program.WatchSlow(t, f.server, 50*time.Millisecond) // other tests run concurrently
	p := program.Start(t, f.server.URL(), "exporter", "--listen", "127.0.0.1:0", "--every", "1s", "--match", "java=java:*", "--match", "go=go:*")
	url := p.Line()
	body := ""
	require.Eventually(t, func() bool {
		body = download(t, url)
		return strings.Contains(body, "\nredlatch_exporter_looks_total{outcome=\"ok\"} 2\n")
	}, 2*time.Minute, 100*time.Millisecond)
	require.Empty(t, slow())
	for _, line := range []string{
		`redlatch_server_locks_held{group="java",kind="plain"} 10000`,
		`redlatch_server_locks_held{group="go",kind="plain"} 10000`,
		`redlatch_server_locks_held{group="other",kind="fair"} 1`,
		`redlatch_server_locks_held{group="other",kind="readwrite"} 2`,
		`redlatch_server_queue_length{group="other"} 2`,
		`redlatch_server_waiters_dead{group="other"} 0`,
		`redlatch_server_waiting_connections{group="go"} 1`,
		`redlatch_server_waiting_connections{group="java"} 0`,
		`redlatch_server_locks_without_ttl{group="other"} 0`,
	} {
		require.Contains(t, body, "\n"+line+"\n")
	}
	for _, id := range f.ids {
		require.NotContains(t, body, id)
	}
}

func download(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url) //nolint:noctx // a test server
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}
