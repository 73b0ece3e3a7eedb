package show

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

func listedNames(t *testing.T, s redistest.Target, args ...string) (names []string) {
	t.Helper()
	out := program.OK(t, s.URL(), append([]string{"list", "--json"}, args...)...)
	for line := range strings.Lines(out) {
		var l struct{ Name string }
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		names = append(names, l.Name)
	}
	return names
}

func TestListPrintsMatchingLocks(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		require.Equal(t, program.Outcome{Code: 0, Stdout: "", Stderr: "redlatch: no locks here\n"}, program.Finish(t, s.URL(), "list"))
		s.Do(t, "HSET", "orders:1", program.SomeOwner, 1)
		s.Do(t, "HSET", "{eu}orders:2", program.RedissonOwner, 1)
		program.Enqueue(t, s, "{eu}orders:2", program.RedlatchOwner, time.Hour)
		program.Enqueue(t, s, "stuck", program.RedissonOwner, time.Hour)
		s.Do(t, "HSET", "books", "mode", "read", program.RedissonOwner, 1)
		s.Do(t, "HSET", "user", "name", "Ada")
		require.ElementsMatch(t, []string{"orders:1", "{eu}orders:2", "stuck", "books"}, listedNames(t, s))
		require.ElementsMatch(t, []string{"orders:1", "{eu}orders:2"}, listedNames(t, s, "*orders:?"))
		require.ElementsMatch(t, []string{"{eu}orders:2", "stuck"}, listedNames(t, s, "--kind", "fair"))
		require.Equal(t, []string{"orders:1"}, listedNames(t, s, "--kind", "plain"))
		require.Equal(t, []string{"books"}, listedNames(t, s, "--kind", "readwrite"))
		got := program.Finish(t, s.URL(), "list", "--kind", "fair", "none*")
		require.Equal(t, program.Outcome{Code: 0, Stdout: "", Stderr: "redlatch: no locks here of kind fair that match none*\n"}, got)
	})
}

func TestListPrintsTextAndJSON(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "orders:42", program.SomeOwner, 2)
	s.Do(t, "PEXPIRE", "orders:42", 60_000)
	s.Do(t, "SET", engine.LabelKey(uuid.MustParse(program.SomeOwner[:36])), program.LabelText)
	s.Do(t, "HSET", "billing-run", program.RedissonOwner, 1)
	program.Enqueue(t, s, "billing-run", program.SomeOwner, time.Hour)
	program.Enqueue(t, s, "stuck", program.RedissonOwner, time.Hour)
	s.Do(t, "HSET", "a-name-that-is-longer-than-its-column:R&D", otherThread, 1)
	s.Do(t, "HSET", "books", "mode", "read", program.RedissonOwner, 1, otherThread, 2)
	s.Do(t, "HSET", "user:1", "name", "Ada")
	s.Do(t, "SET", "counter", 1)
	out := program.OK(t, s.URL(), "list")
	program.Narrow(t, out)
	program.Golden(t, "list", out)
	lines := strings.Split(strings.TrimSpace(program.OK(t, s.URL(), "list", "--json")), "\n")
	slices.Sort(lines) // in the order found
	program.Golden(t, "list.json", strings.Join(lines, "\n")+"\n")
}

func TestListShowsTwoKindsUnderOneName(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "books", "mode", "read", program.RedissonOwner, 1)
	s.Do(t, "HSET", "orders", program.SomeOwner, 1)
	s.Do(t, "HSET", "queued", "mode", "read", program.RedissonOwner, 1)
	s.Do(t, "HSET", "jobs", program.SomeOwner, 1)
	require.NotContains(t, program.Finish(t, s.URL(), "list").Stdout, "mixed")
	program.Enqueue(t, s, "queued", program.RedissonOwner, time.Hour)
	program.Subscribe(t, s, codec.LockChannel("books"), protocol.ReadWriteChannel("orders"))
	got := program.Finish(t, s.URL(), "list")
	require.Equal(t, 3, strings.Count(got.Stdout, "  mixed  two kinds of lock have this name; see redlatch status"), got.Stdout)
	program.Narrow(t, got.Stdout)
	require.Contains(t, program.Finish(t, s.URL(), "list", "--json", "books").Stdout, `"plain_waiters":1`)
	require.Contains(t, program.Finish(t, s.URL(), "list", "--json", "orders").Stdout, `"read_write_waiters":1`)
	require.NotContains(t, program.Finish(t, s.URL(), "list", "--json", "jobs").Stdout, `waiters`)
}

func TestListRejectsInvalidRequest(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"--kind big": "--kind must be plain, fair, fenced, fair-fenced, readwrite, semaphore, latch or counter",
		"--sort age": "--sort must be name, lease or queue",
		"--limit -1": "--limit must not be negative",
	} {
		program.Fails(t, program.NoServer(t), 2, says, append([]string{"list"}, strings.Fields(line)...)...)
	}
	program.Fails(t, program.NoServer(t), 1, "connection refused", "list")
}

func TestListReportsUnreadableData(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "app:job", program.SomeOwner, 1)
	s.Do(t, "HSET", "secret", program.SomeOwner, 1)
	s.Do(t, "ACL", "SETUSER", "onlooker", "reset", "on", ">password", "+scan", "+hscan", "+pttl", "+llen", "+lindex", "+hget", "~app:*")
	url := "redis://onlooker:password@" + s.Addr()
	got := program.Finish(t, url, "list")
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Contains(t, got.Stdout, "app:job ")
	require.NotContains(t, got.Stdout, "secret")
	program.OneLine(t, got.Stderr)
	require.Contains(t, got.Stderr, "1 key was not inspected: this user may not read it (NOPERM")
	got = program.Finish(t, url, "list", "sec*")
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Empty(t, got.Stdout)
	require.Contains(t, got.Stderr, "\nredlatch: no locks visible to this user that match sec*\n")

	s.Do(t, "ACL", "SETUSER", "onlooker", "-scan")
	program.Fails(t, url, 1, "rejected the request: NOPERM", "list")
}

func TestRowFitsTerminal(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 79)
	for _, l := range []*inspect.Lock{
		{Name: "orders", Kind: inspect.Plain, Holders: []inspect.Holder{{Owner: program.SomeOwner, Count: "1"}}, TTL: time.Second},
		{Name: long, Kind: inspect.Fair, Holders: []inspect.Holder{{
			Owner: program.RedissonOwner[:37] + "9999999999", Count: "99999", Label: strings.Repeat("word ", 40),
		}}, TTL: redlatch.NoTTL, Queue: 99999},
		{Name: long, Kind: inspect.Fair, Queue: 1, Next: program.RedissonOwner, NextLabel: strings.Repeat("word ", 39)},
		{Name: "日本語ロック", Kind: inspect.Fair, Holders: []inspect.Holder{{
			Owner: program.RedissonOwner[:37] + "9999999999", Count: "99999", Label: strings.Repeat("請求書 ", 20),
		}}, TTL: 99 * time.Hour, Queue: 99999},
		{Name: strings.Repeat("🔒", 11), Kind: inspect.Plain, Holders: []inspect.Holder{{Owner: strings.Repeat("所", 40), Count: "1"}}, TTL: time.Second},
		{Name: "x", Kind: inspect.ReadWrite, More: true, Holders: []inspect.Holder{{Owner: program.RedissonOwner + ":write", Count: "1"}}, TTL: 99 * time.Hour},
		{Name: "x", Kind: inspect.ReadWrite, Holders: make([]inspect.Holder, 12), TTL: 9999 * time.Hour},
	} {
		for _, line := range append(rowOf(io.Discard, l, cli.Look(false)).lines, heading(cli.Look(false))) {
			program.Narrow(t, line)
		}
	}
}

func TestPagesAreSortedAndBounded(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	const page = 1000
	table := &printer{out: &out, format: &cli.Output{}, page: page}
	for i := range 2*page + 1 {
		table.keep(row{name: fmt.Sprintf("%04d", 9999-i), lines: []string{fmt.Sprintf("%04d", 9999-i)}})
		table.tally.locks++
		require.Less(t, len(table.rows), page)
	}
	table.flush()
	require.Equal(t, 2*page+1, table.printed)
	lines := strings.Split(out.String(), "\n")
	require.Len(t, lines, 2*page+3, "one heading")
	require.True(t, strings.HasPrefix(lines[1], fmt.Sprint(9999-page+1)))
	require.True(t, strings.HasPrefix(lines[page], "9999"))
	out.Reset()
	table.end(2*page + 1)
	require.Equal(t, "2001 locks, sorted in pages of 1000: --sort name sorts all\n", out.String())
	for _, alike := range []struct {
		sorted  bool
		printed int
	}{{true, 2*page + 1}, {false, page}} {
		out.Reset()
		table.sorted, table.printed, table.tally.locks = alike.sorted, alike.printed, alike.printed
		table.end(alike.printed)
		require.Equal(t, fmt.Sprintf("%d locks\n", alike.printed), out.String())
	}
}

func TestProgressIsReportedPeriodically(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	report := progress(&out, noteEvery)
	report(0.1, 1)
	require.Empty(t, out.String(), "a short scan is quiet")
	report = progress(&out, 0)
	report(0.25, 1234)
	require.Equal(t, "redlatch: 25% of the keys scanned, 1234 locks\n", out.String())
}

func TestListShowsSemaphores(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "SET", "pool", 3, "PX", time.Hour.Milliseconds())
	s.Do(t, "ZADD", protocol.PermitsKey("pool"), 1, "0123456789abcdef", protocol.PermitForever, "fedcba9876543210")
	s.Do(t, "SET", "visits", 41)
	out := program.OK(t, s.URL(), "list")
	require.Regexp(t, `(?m)^pool +sem    2 taken, 3 available +- +(1h|59m)\S* +-$`, out)
	require.NotContains(t, out, "visits")
	require.Contains(t, out, "\n1 semaphore\n")
	program.Narrow(t, out)

	s.Do(t, "HSET", "orders", program.SomeOwner, 1)
	s.Do(t, "PERSIST", "pool")
	require.Contains(t, program.Finish(t, s.URL(), "list").Stdout, "\n2 locks and semaphores\n")
	require.JSONEq(t, `{"name":"pool","kind":"semaphore","available":3,"taken":2,"ttl_ms":null}`,
		program.Finish(t, s.URL(), "list", "--json", "pool").Stdout)
	require.Equal(t, []string{"orders", "pool"}, listedNames(t, s, "--sort", "name"))
	require.Equal(t, []string{"orders"}, listedNames(t, s, "--kind", "plain"))
	require.Equal(t, []string{"pool"}, listedNames(t, s, "--kind", "semaphore"))
	require.Equal(t, []string{"visits"}, listedNames(t, s, "--kind", "counter"))
	require.Empty(t, listedNames(t, s, "--no-ttl", "pool"), "it is no lock that is held")
	got := program.Finish(t, s.URL(), "list", "--kind", "latch")
	require.Equal(t, program.Outcome{Code: 0, Stderr: "redlatch: no numbers here of kind latch\n"}, got)
	got = program.Finish(t, s.URL(), "list", "--kind", "counter")
	require.Regexp(t, `(?m)^visits +count  41 +- +- +-$`, got.Stdout)
}

// fillServer starts a server with n other keys, a lock for every hundred of them, a quarter of
// which have queues, and a long hash and queue.
func fillServer(t *testing.T, n int) (s *redistest.Server, locks int) {
	t.Helper()
	s = redistest.Start(t)
	c := s.Dial(t)
	sent := 0
	send := func(command string, args ...any) {
		require.NoError(t, c.Send(command, args...))
		if sent++; sent%1000 == 0 {
			_, err := c.Do("")
			require.NoError(t, err)
		}
	}
	each := func(do string, n int) {
		for from := 0; from < n; from += 10_000 {
			send("EVAL", "for i = ARGV[1], ARGV[2] do "+do+" end", 0, from, min(from+10_000, n)-1)
		}
	}
	each("redis.call('SET', 'key:' .. i, 'value')", n)
	for i := range n / 100 {
		name := fmt.Sprintf("orders:%07d", i)
		send("HSET", name, codec.NewOwner(uuid.NameSpaceDNS, int64(i)).String(), 1)
		send("PEXPIRE", name, time.Hour.Milliseconds())
		if i%4 == 0 {
			send("RPUSH", codec.QueueKey(name), program.RedissonOwner, program.RedlatchOwner)
		}
	}
	// HGETALL would be slow, and so would LRANGE of a whole queue.
	each("redis.call('HSET', 'big-map', i, 1)", n/2)
	each("redis.call('RPUSH', '"+codec.QueueKey("orders:0000000")+"', i)", n/2)
	_, err := c.Do("")
	require.NoError(t, err)
	return s, n / 100
}

func TestListLoadIsBounded(t *testing.T) {
	t.Parallel()
	const keys = 20_000
	s, locks := fillServer(t, keys)
	got := program.Start(t, s.URL(), "list", "--json").Outcome(5 * time.Minute)
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Equal(t, locks, strings.Count(got.Stdout, "\n"), "each lock once")
	require.Equal(t, locks/4, strings.Count(got.Stdout, `"kind":"fair"`))
	stats := s.CommandStats(t)
	require.Greater(t, stats["scan"], int64(keys/256), "each scan is short")
	for _, never := range []string{"keys", "hgetall", "type"} {
		require.Zero(t, stats[never], never)
	}

	got = program.Start(t, s.URL(), "list").Outcome(5 * time.Minute)
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Equal(t, locks+2, strings.Count(got.Stdout, "\n"), "each lock once, a heading, and how many they are")
	require.Contains(t, got.Stdout, fmt.Sprintf("\n%d locks\n", locks))
}

type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

func TestInterruptedListPrintsContendedLocks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "EVAL", `for i = 1, 500 do
		redis.call('HSET', 'plain' .. i, ARGV[1], 1)
		redis.call('HSET', 'contended' .. i, ARGV[1], 1)
		redis.call('RPUSH', 'redisson_lock_queue:{contended' .. i .. '}', ARGV[2])
	end`, 0, program.SomeOwner, program.RedlatchOwner)
	srv, err := connect.New(connect.Settings{Address: s.URL()})
	require.NoError(t, err)
	for _, format := range []string{"json", "yaml"} {
		ctx, cancel := context.WithCancel(t.Context())
		var out strings.Builder
		l := &lister{from: srv, errors: io.Discard, hint: func(text string) string { return text }}
		l.out = writerFunc(func(p []byte) { cancel(); out.Write(p) })
		l.format.RegisterTable(&cobra.Command{}, "")
		require.NoError(t, l.format.Set(format))
		require.ErrorIs(t, l.list(ctx), context.Canceled)
		require.Contains(t, out.String(), `"contended`)
	}
}

func TestListReadsFewFieldsOfLargeHash(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "EVAL", "for i = 1, 50000 do redis.call('HSET', 'big-map', i, 1) end", 0)
	s.Do(t, "HSET", "orders", program.RedlatchOwner, 1)
	s.Do(t, "PEXPIRE", "orders", time.Hour.Milliseconds())
	before := s.BytesSent(t)
	got := program.Start(t, s.URL(), "list", "--json").Outcome(time.Minute)
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Equal(t, 1, strings.Count(got.Stdout, "\n"))
	require.Less(t, s.BytesSent(t)-before, 100_000, "bytes; the whole hash is more than twice as much")
}

func TestClusterNodeAloneIsRejected(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.WithArgs("--cluster-enabled", "yes", "--cluster-config-file", filepath.Join(t.TempDir(), "nodes.conf")))
	const says = " is one node of a cluster and has only part of its locks: use redis-cluster:// in --redis or REDIS_URL"
	program.Fails(t, s.URL(), 1, s.Addr()+says, "list")
}
