//go:build unix

package hold

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// TestRunNamesMissingRight also checks the exit code after a failed release.
func TestExitCodeKeptWhenServerIsDown(t *testing.T) {
	testlevel.All(t, "a release waits for the server for seconds")
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

// suspend sends SIGTSTP and returns when redlatch has stopped.
func suspend(t *testing.T, p *program.Process) {
	t.Helper()
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTSTP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.Cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped())
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

func TestEndedHoldReportsAndSignalsProcess(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	hold := func(flag string) (name string, ended func(says string)) {
		name, other := redistest.Key(t), sleeper(t)
		env, next := notified(t, false)
		p := program.StartWith(t, []string{"REDIS_URL=" + s.URL(), env},
			"hold", flag, "--for-pid", strconv.Itoa(other.Process.Pid), "--on-lost-signal=USR1", name)
		p.Line()
		return name, func(says string) {
			next() // it waits
			next() // it holds
			require.Contains(t, next(), "STOPPING=1\nSTATUS=lock \""+name+"\" "+says)
			got := p.Outcome(2 * program.Soon)
			require.Equal(t, 125, got.Code)
			program.OneLine(t, got.Stderr)
			require.Contains(t, got.Stderr, `lock "`+name+`" `+says)
			require.False(t, program.Exists(t, s, name))
			var exit *exec.ExitError
			require.ErrorAs(t, other.Wait(), &exit)
			status, ok := exit.Sys().(syscall.WaitStatus)
			require.True(t, ok)
			require.Equal(t, syscall.SIGUSR1, status.Signal())
		}
	}
	lost, endedByLoss := hold("--watchdog=10s")
	s.Do(t, "DEL", lost)
	_, endedByLimit := hold("--max-hold=1s")
	endedByLimit("was held for 1s, the maximum set by --max-hold: it was released")
	endedByLoss("was lost: ")
}

func TestReleaseReportsLostLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	name := redistest.Key(t)
	p := command(t, "sh", s.URL(), `trap 'echo told' USR1
		eval "$(redlatch hold -s --watchdog 10s --on-lost-signal USR1 `+name+`)" || exit
		echo $REDLATCH_HOLD_PID; read x; redlatch release`)
	in, err := p.StdinPipe()
	require.NoError(t, err)
	out := &lines{got: make(chan string, 8)}
	var errs strings.Builder
	p.Stdout, p.Stderr = out, &errs
	require.NoError(t, p.Start())
	pid, err := strconv.Atoi(out.next(t))
	require.NoError(t, err)
	if testlevel.IsAll() {
		s.Kill() // the lease expires after nine seconds
	} else {
		s.Do(t, "DEL", name)
	}
	require.Equal(t, "told", out.next(t))
	require.NoError(t, syscall.Kill(pid, 0), "it stays to tell of the loss")
	_, err = in.Write([]byte("\n\n"))
	require.NoError(t, err)
	require.Error(t, p.Wait())
	require.Equal(t, 125, p.ProcessState.ExitCode())
	require.Contains(t, errs.String(), `lock "`+name+`" was lost: `)
}

func TestSuspendedRunKillsCommandAfterLoss(t *testing.T) {
	testlevel.All(t, "it waits for the end of a lease of ten seconds")
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

// The hook runs until the command has ended.
func TestOnLostSelectsActionAndRunsHook(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	const trap, wait, last, deleted = `trap 'echo term; exit 0' TERM; echo up; `, `while [ ! -e told ]; do sleep 0.05; done; `, `read x; echo went on; exit 4`,
		"it was released by another client, or its key was deleted"
	type losing struct {
		policy, script, left, says string
		code                       int

		p                *program.Process
		notified         func() string
		name, dir, owner string
	}
	all := []losing{
		{policy: "term", script: trap + last, left: "term\n", says: "was lost while the command ran: " + deleted, code: 125},
		{policy: "term", script: `trap '' TERM; ` + processTree, says: "was lost while the command ran: " + deleted, code: 125},
		{policy: "kill", script: trap + last, says: "was lost while the command ran: " + deleted, code: 125},
		{policy: "ignore", script: trap + wait + last, left: "went on\n", says: "and the command continued without it: " + deleted, code: 4},
	}
	for i := range all {
		c := &all[i]
		c.name, c.dir = redistest.Key(t), t.TempDir()
		env, next := notified(t, false)
		c.notified = next
		c.p = program.StartWith(t, []string{"REDIS_URL=" + s.URL(), env}, "run", "--watchdog=10s", "--on-lost", c.policy, "--on-lost-exec",
			`cd `+c.dir+`; echo "$REDLATCH_LOCK|$REDLATCH_OWNER|$REDLATCH_LOSS" >new; mv new told; while kill -0 $(cat pid) 2>&-; do sleep 0.05; done; echo hook; exit 3`,
			c.name, "--", "sh", "-c", `cd `+c.dir+`; echo $$ >pid; echo "$REDLATCH_OWNER"; `+c.script)
		c.owner = c.p.Line()
		require.Equal(t, "up", c.p.Line())
		s.Do(t, "DEL", c.name)
		if c.policy == "ignore" {
			s.Do(t, "HSET", c.name, program.SomeOwner, 1) // the renewal that detects the loss leaves it alone
		}
	}
	for _, c := range all {
		if c.policy == "ignore" {
			require.NoError(t, c.p.Stdin.Close())
		}
		require.Equal(t, c.left, c.p.Rest()) // until all processes with this output have ended
		require.Equal(t, c.code, c.p.Code())
		c.notified() // it waits
		c.notified() // it holds
		require.Regexp(t, map[bool]string{false: `^STOPPING=1\n`, true: "^"}[c.policy == "ignore"]+`STATUS=lost lock \Q`+c.name+`\E: .`, c.notified())
		told, err := os.ReadFile(filepath.Join(c.dir, "told"))
		require.NoError(t, err)
		require.Regexp(t, `^\Q`+c.name+`|`+c.owner+`\E\|.+\n$`, string(told))
		const hook = "hook\nredlatch: warning: --on-lost-exec: exit status 3\n"
		require.Contains(t, c.p.Stderr.String(), hook)
		said := strings.Replace(c.p.Stderr.String(), hook, "", 1)
		program.OneLine(t, said)
		require.Contains(t, said, c.says)
	}
}
