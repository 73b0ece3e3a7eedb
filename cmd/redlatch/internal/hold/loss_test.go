//go:build unix

package hold

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

func TestLossEndsACommandWithSIGTERM(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	p := program.Start(t, s.URL(), "run", "--watchdog", "10s", name, "--", "sh", "-c", program.EndsOnSIGTERM)
	require.Equal(t, "up", p.Line())
	client, err := redlatch.Open(t.Context(), s.URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	forced, err := rlock.New(client, name).ForceUnlock(t.Context())
	require.NoError(t, err)
	require.True(t, forced)
	require.Equal(t, "term", p.Line())
	require.Empty(t, p.Rest())
	require.Equal(t, 125, p.Code())
	require.Contains(t, p.Stderr.String(), "was lost")
}

func TestLossEndsACommandThatIgnoresSIGTERMWithSIGKILL(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	p := program.Start(t, s.URL(), "run", "--watchdog", "3s", name, "--", "sh", "-c", program.IgnoresSIGTERM)
	require.Equal(t, "up", p.Line())
	require.EqualValues(t, 1, s.Do(t, "DEL", name))
	require.Empty(t, p.Rest())
	require.Equal(t, 125, p.Code())
	require.Contains(t, p.Stderr.String(), "was lost")
}

func TestFixedLeaseEndsTheCommandBeforeTheServerEndsTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	redistest.UnlessTheMachineStalls(t, func() error {
		name := redistest.Key(t)
		pipe, death := awaitDeaths(t)
		p := program.Start(t, s.URL(), "run", "--lease", "5s", name, "--", "sh", "-c", "exec 3>"+pipe+"; "+program.IgnoresSIGTERM)
		require.Equal(t, "up", p.Line())
		over := keysEnd(t, s, false, name)[0]
		err := diedInTime(t, <-death, over)
		require.Equal(t, 125, p.Code())
		require.Contains(t, p.Stderr.String(), "its lease of 5s was over")
		return err
	})
}

func TestCommandThatEndsByItselfKeepsItsCodeWhenTheServerIsGone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := program.Start(t, s.URL(), "run", redistest.Key(t), "--", "sh", "-c", "echo up; read x; exit 7")
	require.Equal(t, "up", p.Line())
	s.Kill()
	require.NoError(t, p.Stdin.Close())
	require.Empty(t, p.Rest())
	require.Equal(t, 7, p.Code())
	program.OneLine(t, p.Stderr.String())
	require.Contains(t, p.Stderr.String(), "left to its lease")
}

// processTree starts a child, a grandchild and one more in the background, which all
// keep standard output open.
const processTree = `trap '' HUP; sh -c 'sleep 300 & sleep 300; true' & echo up; sleep 300; true`

func TestLossEndsTheChildrenOfTheCommandToo(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	p := program.Start(t, s.URL(), "run", "--watchdog", "3s", name, "--", "sh", "-c", `trap '' TERM; `+processTree)
	require.Equal(t, "up", p.Line())
	s.Do(t, "DEL", name)
	require.Empty(t, p.Rest())
	require.Equal(t, 125, p.Code())
}

// suspend does what Ctrl-Z does, and returns when redlatch has stopped.
func suspend(t *testing.T, p *program.Process) {
	t.Helper()
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTSTP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.Cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped())
}

func TestSuspendedRunStopsTheCommandAndKillsItIfTheLockIsGoneAfterwards(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	beat := filepath.Join(t.TempDir(), "beat")
	p := program.Start(t, s.URL(), "run", "--watchdog", "3s", name, "--", "sh", "-c",
		"trap '' TERM; echo x >"+beat+"; echo up; while :; do echo x >>"+beat+"; sleep 0.02; done")
	require.Equal(t, "up", p.Line())
	suspend(t, p)
	before, err := os.ReadFile(beat)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.Do(t, "EXISTS", name) == int64(0) }, program.Soon, program.PollEvery,
		"it goes on renewing")
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGCONT))
	require.Empty(t, p.Rest())
	require.Equal(t, 125, p.Code())
	require.Contains(t, p.Stderr.String(), "was lost")
	after, err := os.ReadFile(beat)
	require.NoError(t, err)
	require.Len(t, after, len(before), "the command went on without the lock")
}

func TestRunThatWasSuspendedBrieflyGoesOn(t *testing.T) {
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
