//go:build unix

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

func TestLossEndsThePoliteWithSIGTERM(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	p := start(t, s.URL(), "run", "--watchdog", "10s", name, "--", "sh", "-c", polite)
	require.Equal(t, "up", p.line())
	client, err := redlatch.Open(t.Context(), s.URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	forced, err := rlock.New(client, name).ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, forced)
	require.Equal(t, "term", p.line())
	require.Empty(t, p.rest())
	require.Equal(t, 125, p.code())
	require.Contains(t, p.stderr.String(), "was lost")
}

func TestLossEndsTheStubbornWithSIGKILL(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	p := start(t, s.URL(), "run", "--watchdog", "3s", name, "--", "sh", "-c", stubborn)
	require.Equal(t, "up", p.line())
	require.EqualValues(t, 1, s.Do(t, "DEL", name))
	require.Empty(t, p.rest())
	require.Equal(t, 125, p.code())
	require.Contains(t, p.stderr.String(), "was lost")
}

func TestFixedLeaseEndsTheCommandBeforeTheServerEndsTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	pipe, death := deathbed(t)
	p := start(t, s.URL(), "run", "--lease", "5s", name, "--", "sh", "-c", "exec 3>"+pipe+"; "+stubborn)
	require.Equal(t, "up", p.line())
	over := keyEnds(t, s, name)
	died := <-death
	require.True(t, died.Before(over), "the command outlived its lock by %v", died.Sub(over))
	require.Greater(t, died, over.Add(-4*time.Second), "given up without need")
	require.Equal(t, 125, p.code())
	require.Contains(t, p.stderr.String(), "its lease of 5s was over")
}

// deathbed returns the path of a pipe, and a channel that gets the time at which
// all processes that had it open were dead.
func deathbed(t *testing.T) (string, <-chan time.Time) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	death := make(chan time.Time, 1)
	go func() {
		_, _ = os.ReadFile(path) // waits for somebody to open it, and for all to close it
		death <- time.Now()
	}()
	return path, death
}

// keyEnds returns when the key expires, if nobody renews it: at this moment or
// a little earlier.
func keyEnds(t *testing.T, s *redistest.Server, name string) time.Time {
	t.Helper()
	asked := time.Now()
	ttl, ok := s.Do(t, "PTTL", name).(int64)
	require.True(t, ok)
	require.Positive(t, ttl)
	return asked.Add(time.Duration(ttl) * time.Millisecond)
}

func TestCommandThatEndsByItselfKeepsItsCodeWhenTheServerIsGone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := start(t, s.URL(), "run", redistest.Key(t), "--", "sh", "-c", "echo up; read x; exit 7")
	require.Equal(t, "up", p.line())
	s.Kill()
	require.NoError(t, p.stdin.Close())
	require.Empty(t, p.rest())
	require.Equal(t, 7, p.code())
	oneLine(t, p.stderr.String())
	require.Contains(t, p.stderr.String(), "left to its lease")
}

// family starts a child, a grandchild and one more in the background, which all
// keep standard output open.
const family = `trap '' HUP; sh -c 'sleep 300 & sleep 300; true' & echo up; sleep 300; true`

func TestLossEndsTheChildrenOfTheCommandToo(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	p := start(t, s.URL(), "run", "--watchdog", "3s", name, "--", "sh", "-c", `trap '' TERM; `+family)
	require.Equal(t, "up", p.line())
	s.Do(t, "DEL", name)
	require.Empty(t, p.rest())
	require.Equal(t, 125, p.code())
}

// suspend does what Ctrl-Z does, and returns when redlatch has stopped.
func suspend(t *testing.T, p *program) {
	t.Helper()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTSTP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped())
}

func TestSuspendedRunStopsTheCommandAndKillsItIfTheLockIsGoneAfterwards(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	beat := filepath.Join(t.TempDir(), "beat")
	p := start(t, s.URL(), "run", "--watchdog", "3s", name, "--", "sh", "-c",
		"trap '' TERM; echo x >"+beat+"; echo up; while :; do echo x >>"+beat+"; sleep 0.02; done")
	require.Equal(t, "up", p.line())
	suspend(t, p)
	before, err := os.ReadFile(beat)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.Do(t, "EXISTS", name) == int64(0) }, soon, pollEvery,
		"it goes on renewing")
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	require.Empty(t, p.rest())
	require.Equal(t, 125, p.code())
	require.Contains(t, p.stderr.String(), "was lost")
	after, err := os.ReadFile(beat)
	require.NoError(t, err)
	require.Len(t, after, len(before), "the command went on without the lock")
}

func TestRunThatWasSuspendedBrieflyGoesOn(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	p := start(t, s.URL(), "run", redistest.Key(t), "--", "sh", "-c", "echo up; while read x; do echo $x; done")
	require.Equal(t, "up", p.line())
	suspend(t, p)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGCONT))
	_, err := p.stdin.Write([]byte("still here\n"))
	require.NoError(t, err)
	require.Equal(t, "still here", p.line())
	require.NoError(t, p.stdin.Close())
	require.Equal(t, 0, p.code())
}
