//go:build unix

package hold

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

func fairTaken(t *testing.T, s redistest.Target) (*rlock.Lock, *rlock.Hold) {
	t.Helper()
	client := program.Open(t, s)
	lock := rfairlock.New(client, redistest.Key(t))
	hold, err := lock.TryLock(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, hold.Unlock()) })
	return lock, hold
}

// awaitQueue waits until n waiters are queued and subscribed.
func awaitQueue(t *testing.T, lock *rlock.Lock, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		in, err := admin.Inspect(t.Context(), lock)
		return err == nil && len(in.Queue) == n && (n == 0 || in.Queue[n-1].Subscribed)
	}, program.Soon, program.PollEvery)
}

func TestRunFairAcquiresInArrivalOrder(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	lock, hold := fairTaken(t, s)
	order := filepath.Join(t.TempDir(), "order")
	var all []*program.Process
	for i, name := range []string{"first", "second", "third"} {
		p := program.Start(t, s.URL(), "run", "--fair", lock.Name(), "--", "sh", "-c", "echo "+name+" >>"+order)
		all = append(all, p)
		awaitQueue(t, lock, i+1)
	}
	require.NoError(t, hold.Unlock())
	for _, p := range all {
		require.Equal(t, 0, p.Code(), "%s", p.Stderr.String())
	}
	got, err := os.ReadFile(order)
	require.NoError(t, err)
	require.Equal(t, []string{"first", "second", "third"}, strings.Fields(string(got)))
}

func TestRunFairTryNeedsEmptyQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	s.Do(t, "RPUSH", codec.QueueKey(name), program.SomeOwner)
	s.Do(t, "ZADD", codec.TimeoutKey(name), time.Now().Add(time.Hour).UnixMilli(), program.SomeOwner)
	got := program.Finish(t, s.URL(), "run", "--fair", "--try", name, "--", "echo", "never")
	require.Equal(t, program.Outcome{Code: 124, Stdout: "", Stderr: "redlatch: lock \"" + name + "\" is free, but other owners are queued for it\n"}, got)
	got = program.Finish(t, s.URL(), "run", "--try", name, "--", "echo", "in")
	require.Equal(t, program.Outcome{Code: 0, Stdout: "in\n", Stderr: ""}, got, "the plain lock knows no queue")
	s.Do(t, "DEL", codec.QueueKey(name), codec.TimeoutKey(name))
	got = program.Finish(t, s.URL(), "run", "--fair", "--try", name, "--", "echo", "in")
	require.Equal(t, program.Outcome{Code: 0, Stdout: "in\n", Stderr: ""}, got)
}

func TestRunFairTimeoutLeavesQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	lock, _ := fairTaken(t, s)
	require.Empty(t, program.Fails(t, s.URL(), 124, "; its lease ends in ", "run", "--fair", "--wait", "1s", lock.Name(), "--", "echo", "never").Stdout)
	awaitQueue(t, lock, 0)

	p := program.Start(t, s.URL(), "run", "--fair", lock.Name(), "--", "echo", "never")
	awaitQueue(t, lock, 1)
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTERM))
	require.Empty(t, p.Rest())
	require.Equal(t, 128+int(syscall.SIGTERM), p.Code())
	require.Empty(t, p.Stderr.String())
	awaitQueue(t, lock, 0)
	require.EqualValues(t, 0, s.Do(t, "EXISTS", codec.QueueKey(lock.Name()), codec.TimeoutKey(lock.Name())))
}

func TestRunFencedPassesTokenToCommand(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, flags := range [][]string{{"--fenced"}, {"--fenced", "--fair"}} {
		name := redistest.Key(t)
		for _, token := range []string{"1", "2"} {
			args := append(append([]string{"run"}, flags...), name, "--", "sh", "-c", `echo "$REDLATCH_TOKEN"`)
			got := program.Finish(t, s.URL(), args...)
			require.Equal(t, program.Outcome{Code: 0, Stdout: token + "\n", Stderr: ""}, got)
		}
		s.Do(t, "SET", protocol.TokenKey(name), "none")
		program.Fails(t, s.URL(), 125, "cannot increment its token counter", "run", "--fenced", name, "--", "echo", "never")
	}
}

func TestRunPermitsLimitsConcurrency(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t) + ":jobs"
	run := func(n string, command ...string) []string {
		return append([]string{"run", "--permits", name + ":" + n, "--try", "--"}, command...)
	}
	first := program.Start(t, s.URL(), run("2", "sh", "-c", "echo in; read line; echo out")...)
	require.Equal(t, "in", first.Line())
	// The variables of an enclosing run must not leak.
	exe, err := os.Executable()
	require.NoError(t, err)
	inner := append([]string{exe, "--redis", s.URL()}, run("2", "sh", "-c", `echo "$REDLATCH_LOCK $REDLATCH_PERMIT$REDLATCH_OWNER$REDLATCH_TOKEN"`)...)
	out := program.OK(t, s.URL(), append([]string{"run", "--fenced", redistest.Key(t) + ":outer", "--"}, inner...)...)
	lock, id, _ := strings.Cut(strings.TrimSpace(out), " ")
	require.Equal(t, name, lock)
	require.Len(t, id, 32)
	require.EqualValues(t, 1, s.Do(t, "ZCARD", protocol.PermitsKey(name)), "the second is back")
	program.Fails(t, s.URL(), 124, ": its only permit is in use\n", run("1", "echo", "never")...)
	require.Equal(t, []byte("0"), s.Do(t, "GET", name), "the number has changed, the first has its permit")
}

func TestRunPermitsKeepsForeignCounter(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	s.Do(t, "SET", name, 48213)
	program.Fails(t, s.URL(), 125, "the key contains 48213, and no permit is in use", "run", "--permits", name+":5", "--", "true")
	require.Equal(t, []byte("48213"), s.Do(t, "GET", name))
}

func TestRunNamesMissingPermitRights(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	url := s.GiveRights(t, []string{"Plain locks", "Server time"})
	args := []string{"run", "--try", "--permits", "app:job:1", "--", "echo", "in"}
	got := program.Finish(t, url, args...)
	require.Equal(t, 125, got.Code)
	program.OneLine(t, got.Stderr)
	require.Regexp(t, `The user lacks [^.]*\+zadd [^.]*~redisson_sc:\{app:job\* `, got.Stderr)
	got = program.Finish(t, s.GiveRights(t, []string{"Plain locks", "Server time", "Semaphores"}), args...)
	require.Equal(t, program.Outcome{Stdout: "in\n"}, got)
}

func TestRunReadersShareAndWritersExclude(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	reader := program.Start(t, s.URL(), "run", "--read", name, "--", "sh", "-c", "echo in; read end; echo out")
	require.Equal(t, "in", reader.Line())
	got := program.Finish(t, s.URL(), "run", "--read", "--try", name, "--", "echo", "too")
	require.Equal(t, program.Outcome{Code: 0, Stdout: "too\n"}, got)
	got = program.Finish(t, s.URL(), "run", "--write", "--try", name, "--", "echo", "never")
	require.Equal(t, 124, got.Code)
	require.NoError(t, reader.Stdin.Close())
	require.Equal(t, "out", reader.Line())
	got = program.Finish(t, s.URL(), "run", "--write", "--at-least", "1h", name, "--", "true")
	require.Equal(t, program.Outcome{}, got)
	program.Fails(t, s.URL(), 124, "is held by ", "run", "--read", "--try", name, "--", "echo", "never")
}
