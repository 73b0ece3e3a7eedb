package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/rlock"
)

// exported is how many locks each of both kinds of clients holds.
const exported = 10_000

// testExporter counts what a live Redisson and Redlatch hold, 20,000 locks, and how they wait.
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
	// A fair lock of Java for which two of its threads are queued, and a plain one for which
	// both kinds wait.
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

	slow := program.WatchSlow(t, f.server, 50*time.Millisecond) // other tests run beside it
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
	resp, err := http.Get(url) //nolint:noctx // the test's own server
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return string(text)
}
