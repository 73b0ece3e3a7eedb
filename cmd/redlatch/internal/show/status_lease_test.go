package show

import (
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rlock"
)

func TestStatusLooksUntilTheLeaseIsRenewedWithFor(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	c, err := redlatch.Open(t.Context(), s.URL())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	_, err = rlock.New(c, name).Lock(t.Context(), rlock.WithWatchdog(6*time.Second))
	require.NoError(t, err)
	require.Contains(t, program.Finish(t, s.URL(), "status", "--json", name).Stdout, `"renewed": "unknown"`)
	got := program.Finish(t, s.URL(), "status", "--for", "30s", name)
	require.Regexp(t, `\n  lease  \S+ left, renewed\n`, got.Stdout)
	require.Contains(t, program.Finish(t, s.URL(), "status", "--for", "30s", "--json", name).Stdout, `"renewed": "yes"`)

	fixed := redistest.Key(t)
	s.Do(t, "HSET", fixed, program.SomeOwner, 1)
	s.Do(t, "PEXPIRE", fixed, 6_000)
	got = program.Finish(t, s.URL(), "status", "--for", "5s", fixed)
	require.Regexp(t, `\n  lease  \S+ left, not renewed when due: fixed, or the holder is gone\n`, got.Stdout)
}

func TestStatusNamesTheClientsLibrary(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const name = "billing-run"
	s.Do(t, "HSET", name, program.SomeOwner, 1)
	program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
	program.Enqueue(t, s, name, redlatch.NewOwner(program.ClientID, 2).String(), time.Hour)
	s.Do(t, "SET", engine.LabelKey(program.ClientID), "a label that is so long that it does not fit on one line beside what else there is")
	holder, err := redlatch.ParseOwner(program.SomeOwner)
	require.NoError(t, err)
	s.Do(t, "SET", engine.LabelKey(holder.Client()), program.LabelText)
	got := program.Finish(t, s.URL(), "status", name)
	program.Fits(t, got.Stdout)
	require.Contains(t, got.Stdout, "\n         Redlatch since "+program.RedlatchSince+", label \""+program.LabelText+"\"\n")
	require.Contains(t, program.Words(got.Stdout), `label "a label that is so long that it does not fit on one line beside what else there is"`)
	require.Contains(t, program.Finish(t, s.URL(), "status", "--json", name).Stdout, `"label": "`+program.LabelText+`"`)
	list := program.Finish(t, s.URL(), "list").Stdout
	program.Fits(t, list)
	require.Contains(t, list, "\n  label  "+program.LabelText+"\n")

	// It is for people: whatever stands there must not get to a terminal.
	s.Do(t, "SET", engine.LabelKey(program.ClientID), "\x1b[2J")
	require.Contains(t, program.Finish(t, s.URL(), "status", name).Stdout, `label "\x1b[2J"`)
	s.Do(t, "SET", engine.LabelKey(holder.Client()), "\x1b[2J")
	require.NotContains(t, program.Finish(t, s.URL(), "list").Stdout, "\x1b")
	require.NotContains(t, program.Finish(t, s.URL(), "watch", "--for", "1s", name).Stdout, "\x1b")
}

func TestStatusWarnsOfAPlainAndAFairLockOfOneName(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	s.Do(t, "HSET", name, program.SomeOwner, 1)
	program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
	require.NotContains(t, program.Finish(t, s.URL(), "status", name).Stdout, "mixed")
	c := s.Dial(t)
	require.NoError(t, c.Send("SUBSCRIBE", codec.LockChannel(name)))
	require.NoError(t, c.Flush())
	_, err := redis.ReceiveWithTimeout(c, program.Soon)
	require.NoError(t, err)
	got := program.Finish(t, s.URL(), "status", name)
	require.Contains(t, got.Stdout, "\n  mixed  1 connection waits for this name as for a plain lock, ")
	program.Narrow(t, got.Stdout[len("lock ")+len(name):])
	require.Contains(t, program.Finish(t, s.URL(), "status", "--json", name).Stdout, `"plain_waiters": 1`)
}

func TestStatusWarnsOfAPlainAndAReadWriteLockOfOneName(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, c := range []struct {
		channel func(string) string
		fields  []any
		says    string
		json    string
	}{
		{codec.ReadWriteChannel, []any{program.SomeOwner, 1}, "for this name as for a read/write lock", `"read_write_waiters": 1`},
		{codec.LockChannel, []any{"mode", "read", program.SomeOwner, 1}, "for this name as for a plain lock", `"plain_waiters": 1`},
	} {
		name := redistest.Key(t)
		s.Do(t, "HSET", append([]any{name}, c.fields...)...)
		require.NotContains(t, program.Finish(t, s.URL(), "status", name).Stdout, "mixed")
		conn := s.Dial(t)
		require.NoError(t, conn.Send("SUBSCRIBE", c.channel(name)))
		require.NoError(t, conn.Flush())
		_, err := redis.ReceiveWithTimeout(conn, program.Soon)
		require.NoError(t, err)
		got := program.Finish(t, s.URL(), "status", name)
		require.Contains(t, got.Stdout, "\n  mixed  1 connection waits "+c.says)
		program.Narrow(t, got.Stdout[len("lock ")+len(name):])
		require.Contains(t, program.Finish(t, s.URL(), "status", "--json", name).Stdout, c.json)
	}
}

func TestALeaseThatIsNotRenewedFitsATerminalHoweverLongItIs(t *testing.T) {
	t.Parallel()
	left := (59*time.Minute + 59900*time.Millisecond).Milliseconds()
	var b strings.Builder
	(&status{View: inspect.View{Named: inspect.NameOf("a"), Held: true, Lease: inspect.Lease{TTLMillis: &left}}, Renewed: inspect.RenewedNo, Queue: []inspect.Waiter{}}).print(&b)
	program.Narrow(t, b.String())
	require.Contains(t, program.Words(b.String()), "59m59.9s left, not renewed when due: fixed, or the holder is gone")
}
