//go:build unix

package hold

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestExitCodeKeptWhenServerIsDown(t *testing.T) {
	t.Parallel()
	for flag, says := range map[string]string{"--at-least=0s": "its lease will expire", "--at-least=1h": "it may become free before --at-least expires: "} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t)
			p := program.Start(t, s.URL(), "run", flag, redistest.Key(t), "--", "sh", "-c", "echo up; read x; exit 7")
			require.Equal(t, "up", p.Line())
			s.Kill()
			require.NoError(t, p.Stdin.Close())
			require.Empty(t, p.Rest())
			require.Equal(t, 7, p.Code())
			program.OneLine(t, p.Stderr.String())
			require.Contains(t, p.Stderr.String(), says)
		})
	}
}

// processTree starts descendants that keep standard output open.
const processTree = `trap '' HUP; sh -c 'sleep 300 & sleep 300; true' & echo up; sleep 300; true`

func TestLossKillsCommandChildren(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	p := program.Start(t, s.URL(), "run", "--watchdog", "10s", name, "--", "sh", "-c", `trap '' TERM; `+processTree)
	require.Equal(t, "up", p.Line())
	s.Do(t, "DEL", name)
	require.Empty(t, p.Rest())
	require.Equal(t, 125, p.Code())
}

// suspend sends SIGTSTP and returns when redlatch has stopped.
func suspend(t *testing.T, p *program.Process) {
	t.Helper()
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTSTP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.Cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped())
}

func TestSuspendedRunKillsCommandAfterLoss(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	beat := filepath.Join(t.TempDir(), "beat")
	p := program.Start(t, s.URL(), "run", "--watchdog", "10s", name, "--", "sh", "-c",
		"trap '' TERM; echo x >"+beat+"; echo up; while :; do echo x >>"+beat+"; sleep 0.02; done")
	require.Equal(t, "up", p.Line())
	suspend(t, p)
	before, err := os.ReadFile(beat)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.Do(t, "EXISTS", name) == int64(0) }, 3*program.Soon, 10*program.PollEvery,
		"it goes on renewing")
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGCONT))
	require.Empty(t, p.Rest())
	require.Equal(t, 125, p.Code())
	require.Contains(t, p.Stderr.String(), "was lost")
	after, err := os.ReadFile(beat)
	require.NoError(t, err)
	require.Len(t, after, len(before), "the command went on without the lock")
}

func TestBrieflySuspendedRunContinues(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	p := program.Start(t, s.URL(), "run", redistest.Key(t), "--", "sh", "-c", "echo up; while read x; do echo $x; done")
	require.Equal(t, "up", p.Line())
	suspend(t, p)
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGCONT))
	_, err := p.Stdin.Write([]byte("still here\n"))
	require.NoError(t, err)
	require.Equal(t, "still here", p.Line())
	require.NoError(t, p.Stdin.Close())
	require.Equal(t, 0, p.Code())
}

// awaitDeaths returns the path of a pipe, and a channel that receives when all processes with the
// pipe open have died.
func awaitDeaths(t *testing.T) (string, <-chan time.Time) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	death := make(chan time.Time, 1)
	go func() {
		_, _ = os.ReadFile(path) // until all processes have closed it
		death <- time.Now()
	}()
	return path, death
}

func TestKillingRedlatchKillsCommandTree(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	var all [5]*program.Process
	for i := range all {
		all[i] = program.Start(t, s.URL(), "run", redistest.Key(t), "--", "sh", "-c", processTree)
	}
	for _, p := range all {
		require.Equal(t, "up", p.Line())
		require.NoError(t, p.Cmd.Process.Kill())
	}
	for _, p := range all {
		require.Empty(t, p.Rest()) // returns when all are dead
		require.Equal(t, -1, p.Code())
	}
}
