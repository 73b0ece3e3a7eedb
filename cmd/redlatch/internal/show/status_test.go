package show

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

func TestStatusPrintsJSON(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	got := program.Finish(t, s.URL(), "status", "--json", name)
	require.JSONEq(t, `{"name":"`+name+`","held":false,"holders":[],"ttl_ms":null,"queue_length":0,"queue":[]}`, got.Stdout)
	s.Do(t, "HSET", name, program.SomeOwner, 2)
	got = program.Finish(t, s.URL(), "status", "--json", name)
	require.JSONEq(t, `{"name":"`+name+`","kind":"plain","held":true,"holders":[{"owner":"`+program.SomeOwner+`","count":2,"client":"redlatch","client_started":"2024-12-21T01:06:31.296Z"}],"ttl_ms":null,"no_ttl":true,"queue_length":0,"queue":[]}`, got.Stdout)
	s.Do(t, "PEXPIRE", name, 60_000)
	require.Regexp(t, `"ttl_ms": (5\d\d\d\d|60000),\n`, program.OK(t, s.URL(), "status", "--json", name))
	text, err := inspect.Count("many").MarshalJSON()
	require.NoError(t, err)
	require.JSONEq(t, `"many"`, string(text), "unlock shows what is no lock as it is")
}

func TestStatusAndWatchReportForeignKey(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	list, hash, noQueue, noDeadlines := redistest.Key(t), redistest.Key(t), redistest.Key(t), redistest.Key(t)
	s.Do(t, "RPUSH", list, "text")
	s.Do(t, "HSET", hash, "name", "Ada")
	s.Do(t, "SET", codec.QueueKey(noQueue), "text")
	s.Do(t, "SADD", codec.TimeoutKey(noDeadlines), "text")
	for _, c := range []struct {
		url, name string
		code      int
		says      string
	}{
		{s.URL(), list, 1, "holds a list, and a lock is a hash"},
		{s.URL(), hash, 1, "is a hash but not a lock: its field \"name\" is not an owner"},
		{s.URL(), noQueue, 1, "holds a string, and the queue of a fair lock is a list"},
		{s.URL(), noDeadlines, 1, "holds a set, and the deadlines of a fair lock are a zset"},
		{s.URL(), "", 2, "name is empty"},
		{program.NoServer(t), "x", 1, "connection refused. Start one"},
		{"sesame", "x", 2, "the scheme is missing"},
	} {
		for _, command := range []string{"status", "watch"} {
			program.Fails(t, c.url, c.code, c.says, command, c.name)
		}
	}
}

func TestExitCodeDistinguishesHeldFromFree(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	free, held := redistest.Key(t), program.HeldBy(t, s, program.SomeOwner, time.Minute)
	for _, c := range []struct {
		args []string
		code int
	}{
		{[]string{free}, 0},
		{[]string{"--exit-code", held}, 0},
		{[]string{"--exit-code", free}, 3},
		{[]string{"--exit-code", "--json", free}, 3},
	} {
		got := program.Finish(t, s.URL(), append([]string{"status"}, c.args...)...)
		require.Equal(t, c.code, got.Code, c.args)
		require.Empty(t, got.Stderr)
		require.NotEmpty(t, got.Stdout)
	}
	require.Equal(t, 1, program.Finish(t, program.NoServer(t), "status", "--exit-code", free).Code)
}

// otherThread is a second thread of the Java client in golden files.
const otherThread = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:58"

func statusGolden(t *testing.T, s *redistest.Server, name string, code int) {
	t.Helper()
	for _, as := range []struct{ file, flag string }{{"status-" + name, "--json=false"}, {"status-" + name + ".json", "--json"}} {
		got := program.Finish(t, s.URL(), "status", as.flag, name)
		require.Equal(t, code, got.Code, got.Stderr)
		program.Golden(t, as.file, got.Stdout+got.Stderr)
	}
}

func TestStatusOfPatternRefersToList(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	require.Equal(t, program.Outcome{Stdout: "lock \"ord*\" is free\n", Stderr: "redlatch: status takes names, not patterns; `redlatch list 'ord*'` lists the locks that match the pattern\n"},
		program.Finish(t, s.URL(), "status", "ord*"))
	s.Do(t, "HSET", "ord*", program.SomeOwner, 1)
	require.Empty(t, program.Finish(t, s.URL(), "status", "ord*").Stderr)
}

func TestStatusReportsForeignHash(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "user", "name", "Ada", "mode", "dark")
	statusGolden(t, s, "user", 1)
	s.Do(t, "RPUSH", "mails", "one")
	statusGolden(t, s, "mails", 1)

	s.Do(t, "HSET", "odd", "mode", "read", "\x1b[2J", "1")
	require.Equal(t, program.Outcome{Code: 1, Stdout: "", Stderr: "redlatch: \"odd\" is a hash but not a lock: its field \"\\x1b[2J\" is not an owner\n"},
		program.Finish(t, s.URL(), "status", "odd"))
	s.Do(t, "HSET", "secret", program.RedissonOwner, "sesame")
	got := program.Finish(t, s.URL(), "status", "--json", "secret")
	require.Contains(t, got.Stdout, `"why": "its value of `+program.RedissonOwner+` is not a count"`)
	require.NotContains(t, got.Stdout+got.Stderr, "sesame")
}

func TestStatusSamplesHashBeforeReading(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var fields, owners []any
	for i := range 1000 {
		fields = append(fields, fmt.Sprint("field", i), 1)
		owners = append(owners, codec.NewOwner(program.ClientID, int64(i)).String(), 1)
	}
	s.Do(t, "HSET", append([]any{"big-map"}, fields...)...)
	s.Do(t, "HSET", append([]any{"owners"}, owners...)...)
	s.Do(t, "HSET", append([]any{"readers"}, owners...)...)
	s.Do(t, "HSET", "readers", "mode", "read")
	s.Do(t, "CONFIG", "RESETSTAT")
	require.Contains(t, program.Finish(t, s.URL(), "status", "big-map").Stderr, " is not an owner\n")
	require.Contains(t, program.Finish(t, s.URL(), "status", "owners").Stderr, `it has many owners but no field "mode"`)
	require.Contains(t, program.Finish(t, s.URL(), "watch", "big-map").Stderr, " is not an owner\n")
	require.Zero(t, s.CommandStats(t)["hgetall"])
	require.Contains(t, program.OK(t, s.URL(), "status", "readers"), "  kind   read/write, held for reading\n")

	s.Do(t, "ACL", "SETUSER", "reader", "reset", "on", ">password", "+ping", "+eval", "+evalsha", "+hgetall", "+pttl",
		"+lrange", "+zrange", "+psubscribe", "allkeys", "allchannels")
	for _, command := range []string{"status", "watch"} {
		program.Fails(t, "redis://reader:password@"+s.Addr(), 1, " is not an owner\n", command, "big-map")
	}
}

func TestStatusShowsReadWriteHolders(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	hold := func(name, owner string, n int, left time.Duration) {
		s.Do(t, "SET", fmt.Sprintf("{%s}:%s:rwlock_timeout:%d", name, owner, n), 1, "PX", left.Milliseconds())
	}
	s.Do(t, "HSET", "atlas", "mode", "read", program.RedissonOwner, 2, otherThread, 1)
	s.Do(t, "PEXPIRE", "atlas", time.Hour.Milliseconds())
	hold("atlas", program.RedissonOwner, 1, time.Hour)
	hold("atlas", program.RedissonOwner, 2, time.Minute)
	statusGolden(t, s, "atlas", 0)

	s.Do(t, "HSET", "ledger", "mode", "write", program.RedissonOwner+":write", 1, program.RedissonOwner, 1)
	s.Do(t, "PEXPIRE", "ledger", time.Hour.Milliseconds())
	hold("ledger", program.RedissonOwner, 1, time.Hour)
	statusGolden(t, s, "ledger", 0)

	got := program.Finish(t, s.URL(), "list", "--json", "ledger")
	require.Contains(t, got.Stdout, `"kind":"readwrite","held":true,"mode":"write"`)
	require.Contains(t, got.Stdout, `"owner":"`+program.RedissonOwner+`:write","count":1,"client":"redisson","mode":"write"`)
	out := program.OK(t, s.URL(), "unlock", "--force", "--json", "--even-if-alive", "ledger")
	require.Contains(t, out, `"taken": true`)
	require.NotContains(t, out, "unknown\",\n      \"count", "each has an owner")
	require.NotContains(t, out, `"owner": "mode"`)
}

func TestStatusAndListShowFencingToken(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	s.Do(t, "SET", protocol.TokenKey(name), 41)
	got := program.Finish(t, s.URL(), "status", name)
	require.Equal(t, "lock \""+name+"\" is free\n  token  41\n", got.Stdout)

	s.Do(t, "HSET", name, program.SomeOwner, 1)
	require.Contains(t, program.Finish(t, s.URL(), "status", "--json", name).Stdout, `"kind": "fenced"`)
	require.Contains(t, program.Finish(t, s.URL(), "status", "--json", name).Stdout, `"token": 41`)
	require.Contains(t, program.Finish(t, s.URL(), "list", "--json", name).Stdout, `"kind":"fenced"`)
	require.Regexp(t, `token +41\n`, program.Finish(t, s.URL(), "list", name).Stdout)

	s.Do(t, "RPUSH", codec.QueueKey(name), program.SomeOwner)
	got = program.Finish(t, s.URL(), "list", "--json", "--kind", "fair-fenced", name)
	require.Contains(t, got.Stdout, `"kind":"fair-fenced"`)
	require.Contains(t, got.Stdout, `"token":41`)
	require.Contains(t, program.Finish(t, s.URL(), "status", "--json", name).Stdout, `"kind": "fair-fenced"`)

	s.Do(t, "SET", protocol.TokenKey(name), "no number")
	require.Contains(t, program.Finish(t, s.URL(), "status", "--json", name).Stdout, `"kind": "fair"`)
}
