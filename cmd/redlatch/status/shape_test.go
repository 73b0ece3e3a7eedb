package status

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// otherThread is a thread of the Java client of golden files that is not the first.
const otherThread = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:58"

// statusGolden checks the text and the JSON output.
func statusGolden(t *testing.T, s *redistest.Server, name string, code int) {
	t.Helper()
	for _, as := range []struct{ file, flag string }{{"status-" + name, "--json=false"}, {"status-" + name + ".json", "--json"}} {
		got := program.Finish(t, s.URL(), "status", as.flag, name)
		require.Equal(t, code, got.Code, got.Stderr)
		if as.flag != "--json" {
			program.Narrow(t, got.Stdout)
		}
		program.Golden(t, as.file, got.Stdout+got.Stderr)
	}
}

func TestStatusSaysOfAHashThatItIsNoLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "HSET", "user", "name", "Ada", "mode", "dark")
	statusGolden(t, s, "user", 1)
	s.Do(t, "RPUSH", "mails", "one")
	statusGolden(t, s, "mails", 1)

	// What stands there must get neither to a terminal nor to a log.
	s.Do(t, "HSET", "odd", "mode", "read", "\x1b[2J", "1")
	require.Equal(t, program.Outcome{Code: 1, Stdout: "", Stderr: "redlatch: \"odd\" is a hash, but no lock: its field \"\\x1b[2J\" is no owner\n"},
		program.Finish(t, s.URL(), "status", "odd"))
	s.Do(t, "HSET", "secret", program.RedissonOwner, "sesame")
	got := program.Finish(t, s.URL(), "status", "--json", "secret")
	require.Contains(t, got.Stdout, `"why": "what it has for `+program.RedissonOwner+` is no count"`)
	require.NotContains(t, got.Stdout+got.Stderr, "sesame")
}

// A user that may not glance at hashes gets the same answer, and a hash that is not a lock
// is not read.
func TestStatusGlancesAtAHashBeforeItReadsIt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	var fields, owners []any
	for i := range 1000 {
		fields = append(fields, fmt.Sprint("field", i), 1)
		owners = append(owners, redlatch.NewOwner(program.ClientID, int64(i)).String(), 1)
	}
	s.Do(t, "HSET", append([]any{"big-map"}, fields...)...)
	s.Do(t, "HSET", append([]any{"owners"}, owners...)...)
	s.Do(t, "HSET", append([]any{"readers"}, owners...)...)
	s.Do(t, "HSET", "readers", "mode", "read")
	s.Do(t, "CONFIG", "RESETSTAT")
	require.Contains(t, program.Finish(t, s.URL(), "status", "big-map").Stderr, " is no owner\n")
	require.Contains(t, program.Finish(t, s.URL(), "status", "owners").Stderr, `it has many owners, and no field "mode"`)
	require.Contains(t, program.Finish(t, s.URL(), "watch", "big-map").Stderr, " is no owner\n")
	require.Zero(t, s.CommandStats(t)["hgetall"])
	got := program.Finish(t, s.URL(), "status", "readers")
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Contains(t, got.Stdout, "  kind   read/write, held for reading\n")

	s.Do(t, "ACL", "SETUSER", "reader", "reset", "on", ">password", "+ping", "+eval", "+evalsha", "+hgetall", "+pttl",
		"+lrange", "+zrange", "+psubscribe", "allkeys", "allchannels")
	for _, command := range []string{"status", "watch"} {
		got = program.Finish(t, "redis://reader:password@"+s.Addr(), command, "big-map")
		require.Equal(t, 1, got.Code)
		program.OneLine(t, got.Stderr)
		require.Contains(t, got.Stderr, " is no owner\n")
	}
}

func TestStatusShowsTheHoldersOfAReadWriteLock(t *testing.T) {
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
	got = program.Finish(t, s.URL(), "unlock", "--force", "--json", "--even-if-alive", "ledger")
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Contains(t, got.Stdout, `"taken": true`)
	require.NotContains(t, got.Stdout, "unknown\",\n      \"count", "each has an owner")
	require.NotContains(t, got.Stdout, `"owner": "mode"`)
}
