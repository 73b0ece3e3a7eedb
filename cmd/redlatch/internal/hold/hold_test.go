//go:build unix

package hold

import (
	"errors"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// awaitFree waits until the lock is not held.
func awaitFree(t *testing.T, s redistest.Target, name string) {
	t.Helper()
	require.Eventually(t, func() bool { return !program.Exists(t, s, name) }, program.Soon, program.PollEvery)
}

// sleeper starts a process that a lock can be held for.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func TestHoldPrintsItsOwnerAndFreesTheLockOnASignal(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		for _, kind := range []string{"--fair=false", "--fair", "--write"} {
			name := redistest.Key(t)
			p := program.Start(t, s.URL(), "hold", kind, name)
			_, err := redlatch.ParseOwner(p.Line())
			require.NoError(t, err)
			require.True(t, program.Exists(t, s, name))
			require.NoError(t, p.Cmd.Process.Signal(sig))
			require.Equal(t, program.Outcome{}, p.Outcome(program.Soon))
			require.False(t, program.Exists(t, s, name))
		}
	}
}

func TestHoldPrintsTheTokenAndThePermit(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, flag := range []string{"--fenced", "--permits"} {
		args := map[string][]string{"--fenced": {"hold", "--fenced", redistest.Key(t)}, "--permits": {"hold", "--permits", redistest.Key(t) + ":2"}}
		p := program.Start(t, s.URL(), args[flag]...)
		require.NotEmpty(t, p.Line())
		if flag == "--fenced" {
			require.Equal(t, "1\n", p.Line()+"\n")
		}
		require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTERM))
		require.Equal(t, program.Outcome{}, p.Outcome(program.Soon))
	}
}

func TestHoldEndsWithTheProcessThatItIsFor(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	other := sleeper(t)
	pid := strconv.Itoa(other.Process.Pid)
	p := program.Start(t, s.URL(), "hold", "--for-pid", pid, name)
	p.Line()
	waits := program.Start(t, s.URL(), "hold", "--fair=false", "--for-pid", pid, name)
	require.NoError(t, other.Process.Kill())
	require.Equal(t, program.Outcome{}, p.Outcome(program.Soon))
	got := waits.Outcome(program.Soon)
	if got.Code != 0 { // it may have got the lock, and freed it, if it was slow
		require.Equal(t, 125, got.Code)
		require.Contains(t, got.Stderr, "is not waited for any more: process "+pid+" has ended")
	}
	require.False(t, program.Exists(t, s, name))
	require.NoError(t, ignoreKilled(other.Wait()))
	got = program.Finish(t, s.URL(), "hold", "--for-pid", pid, name)
	require.Equal(t, program.Outcome{Code: 125, Stderr: "redlatch: --for-pid: " + pid + ": there is no such process\n"}, got)
}

func ignoreKilled(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && !exit.Exited() {
		return nil
	}
	return err
}

func TestHoldThatLosesTheLockSaysSoAndSignalsTheProcess(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	other := sleeper(t)
	p := program.Start(t, s.URL(), "hold", "--watchdog=3s", "--for-pid", strconv.Itoa(other.Process.Pid), "--on-lost-signal=USR1", name)
	p.Line()
	s.Do(t, "DEL", name)
	got := p.Outcome(2 * program.Soon)
	require.Equal(t, 125, got.Code)
	program.OneLine(t, got.Stderr)
	require.Contains(t, got.Stderr, `lock "`+name+`" was lost: `)
	var exit *exec.ExitError
	require.ErrorAs(t, other.Wait(), &exit)
	status, ok := exit.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	require.Equal(t, syscall.SIGUSR1, status.Signal())
}

func TestHoldLosesTheLockOfAServerThatIsGone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := program.Start(t, s.URL(), "hold", "--watchdog=3s", redistest.Key(t))
	p.Line()
	s.Kill()
	got := p.Outcome(2 * program.Soon)
	require.Equal(t, 125, got.Code)
	require.Contains(t, got.Stderr, "was lost: ")
}

func TestHoldThatDoesNotGetTheLockExitsAsRunDoes(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := program.HeldBy(t, s, program.SomeOwner, time.Hour)
	for line, code := range map[string]int{"--try": 124, "--wait=1s": 124, "--try --conflict-exit-code=9": 9} {
		args := append([]string{"hold"}, fields(line)...)
		require.Empty(t, program.Fails(t, s.URL(), code, "is held by another owner", append(args, name)...).Stdout)
	}
	p := program.Start(t, s.URL(), "hold", "--watchdog=2s", name)
	require.Eventually(t, func() bool { return slices.Contains(s.Channels(t), codec.LockChannel(name)) }, program.Soon, program.PollEvery)
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, 143, p.Outcome(program.Soon).Code)
}

func TestMaxHoldFreesTheLockAndEndsTheProcess(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	other := sleeper(t)
	got := program.Finish(t, s.URL(), "hold", "--max-hold=1s", "--for-pid", strconv.Itoa(other.Process.Pid), "--on-lost-signal=TERM", name)
	require.False(t, program.Exists(t, s, name))
	require.Equal(t, 125, got.Code)
	require.Equal(t, "redlatch: lock \""+name+"\" was held for 1s, which is the most by --max-hold: it was freed\n", got.Stderr)
	require.Error(t, other.Wait())
}

func TestHoldLeavesTheLockForAtLeast(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	p := program.Start(t, s.URL(), "hold", "--at-least=1h", name)
	p.Line()
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, program.Outcome{}, p.Outcome(program.Soon))
	left, ok := s.Do(t, "PTTL", name).(int64)
	require.True(t, ok)
	require.InDelta(t, time.Hour.Milliseconds(), left, 60_000)
}

func TestHoldRefusesWhatMakesNoSense(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"":                                 "NAME is missing. Usage: redlatch hold [-s] {NAME | --permits NAME:N}; `redlatch hold --help` tells more",
		"a b":                              "there are too many arguments: b. ",
		"--permits a:1 b":                  "--permits NAME:N stands in place of NAME: leave b out. ",
		"--for-pid 0 a":                    "--for-pid must be the number of a process, such as $$",
		"--on-lost-signal TERM a":          "--on-lost-signal needs --for-pid",
		"--on-lost-signal SEGV -s a":       "--on-lost-signal must be TERM, INT, HUP, USR1, USR2 or KILL",
		"--wait 5 a":                       "a time has a unit",
		"--lease 5s --at-least 3s a":       "--lease and --at-least contradict each other",
		"-s --try --wait 3s a":             "--try and --wait contradict each other",
		"--max-hold 1s --at-least 2s -s a": "--at-least is longer than --max-hold",
	} {
		program.Fails(t, program.NoServer(t), 125, says, append([]string{"hold"}, fields(line)...)...)
	}
}
