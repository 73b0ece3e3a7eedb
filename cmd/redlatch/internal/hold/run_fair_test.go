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

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// fairTaken holds a fair lock of its own in the test's process.
func fairTaken(t *testing.T, s redistest.Target) (*rlock.Lock, *rlock.Hold) {
	t.Helper()
	client, err := redlatch.Open(t.Context(), s.URL())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	lock := rfairlock.New(client, redistest.Key(t))
	hold, err := lock.TryLock(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, hold.Unlock()) })
	return lock, hold
}

// awaitQueue waits until n waiters are queued, all of them subscribed.
func awaitQueue(t *testing.T, lock *rlock.Lock, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		in, err := admin.Inspect(t.Context(), lock)
		return err == nil && len(in.Queue) == n && (n == 0 || in.Queue[n-1].Subscribed)
	}, program.Soon, program.PollEvery)
}

func TestRunFairTakesTurnsInTheOrderOfArrival(t *testing.T) {
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

func TestRunFairTryGetsAFreeLockOnlyWithAnEmptyQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	s.Do(t, "RPUSH", codec.QueueKey(name), program.SomeOwner)
	s.Do(t, "ZADD", codec.TimeoutKey(name), time.Now().Add(time.Hour).UnixMilli(), program.SomeOwner)
	got := program.Finish(t, s.URL(), "run", "--fair", "--try", name, "--", "echo", "never")
	require.Equal(t, program.Outcome{Code: 124, Stdout: "", Stderr: "redlatch: lock \"" + name + "\" is free, but others are queued for it\n"}, got)
	got = program.Finish(t, s.URL(), "run", "--try", name, "--", "echo", "in")
	require.Equal(t, program.Outcome{Code: 0, Stdout: "in\n", Stderr: ""}, got, "the plain lock knows no queue")
	s.Do(t, "DEL", codec.QueueKey(name), codec.TimeoutKey(name))
	got = program.Finish(t, s.URL(), "run", "--fair", "--try", name, "--", "echo", "in")
	require.Equal(t, program.Outcome{Code: 0, Stdout: "in\n", Stderr: ""}, got)
}

func TestRunFairThatGivesUpLeavesTheQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	lock, _ := fairTaken(t, s)
	require.Empty(t, program.Fails(t, s.URL(), 124, "is held by another owner, for ", "run", "--fair", "--wait", "300ms", lock.Name(), "--", "echo", "never").Stdout)
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
