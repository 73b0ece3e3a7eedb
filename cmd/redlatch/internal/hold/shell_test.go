//go:build unix

package hold

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

func shells(t *testing.T) (all []string) {
	t.Helper()
	for _, name := range []string{"dash", "bash", "busybox"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Logf("there is no %s: it is left out", name)
			continue
		}
		all = append(all, name)
	}
	require.NotEmpty(t, all)
	return all
}

// script runs a shell script and returns its output and exit code. The script must close all
// outputs when it exits.
func script(t *testing.T, shell, url, text string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := command(t, shell, url, text)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		require.NoError(t, err, "a process keeps the outputs open: %s", errs.String())
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func command(t *testing.T, shell, url, text string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	bin := t.TempDir()
	require.NoError(t, os.Symlink(exe, filepath.Join(bin, "redlatch")))
	args := []string{"-c", text}
	if shell == "busybox" {
		args = append([]string{"sh"}, args...)
	}
	cmd := exec.Command(shell, args...)
	cmd.Env = append(os.Environ(), program.Env+"=1", "GORACE=atexit_sleep_ms=0", "REDIS_URL="+url, "PATH="+bin+":"+os.Getenv("PATH"))
	return cmd
}

func TestEvalHoldsLockUntilRelease(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, shell := range shells(t) {
		name := redistest.Key(t) + " it's $(false) \"`x`\"\n\\"
		stdout, stderr, code := script(t, shell, s.URL(), `set -eu
			eval "$(redlatch hold -s --fenced `+"'"+strings.ReplaceAll(name, "'", `'\''`)+"'"+`)"
			printf '%s|' "$REDLATCH_LOCK" "$REDLATCH_TOKEN"; env | grep -c '^REDLATCH_\(OWNER\|HOLD\|HOLD_PID\)='
			redlatch hold -s --try "$REDLATCH_LOCK" >second || echo "second $?"
			redlatch release "$REDLATCH_LOCK"
			echo "released $?"
			redlatch release || echo "again $?"`)
		require.Equal(t, name+"|1|3\nsecond 124\nreleased 0\nagain 125\n", stdout, "%s: %s", shell, stderr)
		require.Contains(t, stderr, "this owner holds no lock: it was already released")
		require.Zero(t, code)
		require.False(t, program.Exists(t, s, name))
		_ = os.Remove("second")
	}
}

func TestEvalFailsWithHoldExitCode(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := program.HeldBy(t, s, program.SomeOwner, time.Hour)
	for flags, want := range map[string]int{
		"--try": 124, "--wait 1s": 124, "--try --conflict-exit-code 7": 7,
		"--nonsense": 125, "--wait 5": 125, "--lease 0s": 125, "x y": 125, "--conflict-exit-code 0": 125,
	} {
		for _, shell := range testlevel.Part(shells(t), 3, flags) {
			stdout, stderr, code := script(t, shell, s.URL(), `REDLATCH_OWNER=old
				eval "$(redlatch hold -s `+flags+` `+name+`)" || { code=$?; echo "${REDLATCH_OWNER-none}"; exit $code; }
				echo went on`)
			require.Equal(t, want, code, "%s %s: %s", shell, flags, stderr)
			require.Equal(t, "none\n", stdout)
			program.OneLine(t, stderr)
		}
	}
	for _, shell := range shells(t) {
		_, _, code := script(t, shell, s.URL(), `set -e; eval "$(redlatch hold -s --try `+name+`)"; exit 0`)
		require.Equal(t, 124, code)
	}
}

func TestShellFlagHasManySpellings(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]bool{
		"-s": true, "--shell": true, "-s=true": true, "--shell=1": true, "-st": true, "-s=false": false, "--shell=0": false, "s": false, "--fair": false,
	} {
		require.Equal(t, want, asksForShell(arg), arg)
	}
}

func TestShellExitReleasesLock(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, shell := range shells(t) {
		name := redistest.Key(t)
		for text, want := range map[string]int{"exit 3": 3, "kill -KILL $$": -1, "kill -TERM $$": -1} {
			stdout, stderr, code := script(t, shell, s.URL(), `eval "$(redlatch hold -s --try `+name+`)" || exit; echo $REDLATCH_HOLD_PID; redlatch run --try `+name+` -- true 2>&- && exit 99; `+text)
			require.Equal(t, want, code, stderr)
			pid, err := strconv.Atoi(strings.TrimSpace(stdout))
			require.NoError(t, err)
			t.Cleanup(func() {
				if t.Failed() { // it may be alive
					_ = syscall.Kill(pid, syscall.SIGTERM)
				}
			})
			awaitFree(t, s, name)
		}
	}
}

// In a pipe, the parent of hold exits immediately, but $$ does not.
func TestForPIDHoldsForScriptFromSubshell(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, shell := range testlevel.Part(shells(t), 3, "") {
		name := redistest.Key(t)
		stdout, stderr, code := script(t, shell, s.URL(), `eval "$(redlatch hold -s --for-pid $$ `+name+` | cat; true)"
			sleep 1
			redlatch release && echo held`)
		require.Zero(t, code, stderr)
		require.Equal(t, "held\n", stdout)
	}
}

// lines sends each line written to it.
type lines struct{ got chan string }

func (l *lines) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		l.got <- strings.TrimSpace(line)
	}
	return len(text), nil
}

func (l *lines) next(t *testing.T) string {
	t.Helper()
	select {
	case line := <-l.got:
		return line
	case <-time.After(2 * program.Soon):
		require.Fail(t, "nothing is printed")
		return ""
	}
}

func TestReleaseOfKilledHoldFails(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	stdout, stderr, code := script(t, "sh", s.URL(), `eval "$(redlatch hold -s `+name+`)" || exit
		kill -KILL $REDLATCH_HOLD_PID; while kill -0 $REDLATCH_HOLD_PID 2>&-; do sleep 0.05; done
		redlatch release`)
	require.Equal(t, 125, code)
	require.Empty(t, stdout)
	require.Contains(t, stderr, "the process that held it was killed: the lock remains until its lease expires")
	require.True(t, program.Exists(t, s, name))
}

func TestReleaseTargetsNamedHoldOnly(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	a, b := redistest.Key(t), redistest.Key(t)+"b"
	stdout, stderr, code := script(t, "sh", s.URL(), `eval "$(redlatch hold -s `+a+`)" || exit; first=$REDLATCH_OWNER
		eval "$(redlatch hold -s --permits `+b+`:2)" || exit
		redlatch release `+a+` || echo "other $?"
		REDLATCH_PERMIT=another redlatch release || echo "owner $?"
		redlatch release --owner "$first" && redlatch release --owner "$REDLATCH_PERMIT" && echo both
		unset REDLATCH_HOLD; redlatch release || echo "none $?"`)
	require.Zero(t, code)
	require.Equal(t, "other 125\nowner 125\nboth\nnone 125\n", stdout, stderr)
	require.Contains(t, stderr, "the environment belongs to lock "+b+", not "+a+": use --owner for another hold")
	require.Contains(t, stderr, "the hold belongs to another owner")
	require.Contains(t, stderr, "no hold in the environment")
	require.False(t, program.Exists(t, s, a))
}

func TestHoldClosesInheritedFiles(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	stdout, stderr, code := script(t, "bash", s.URL(), `closed=`+filepath.Join(t.TempDir(), "closed")+`
		exec 9> >(cat >/dev/null; : >"$closed")
		eval "$(redlatch hold -s `+name+`)" || exit
		exec 9>&-; for i in {1..200}; do [ -e "$closed" ] && break; sleep 0.05; done
		[ -e "$closed" ] && echo closed; redlatch release`)
	require.Zero(t, code, stderr)
	require.Equal(t, "closed\n", stdout)
}

func TestAbandonedHoldEnds(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := program.HeldBy(t, s, program.SomeOwner, time.Hour)
	for sig, code := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGKILL: -1} {
		p := program.Start(t, s.URL(), "hold", "-s", name)
		program.AwaitSubscribers(t, s, codec.LockChannel(name), 1)
		require.NoError(t, p.Cmd.Process.Signal(sig))
		require.Equal(t, code, p.Code())
		program.AwaitSubscribers(t, s, codec.LockChannel(name), 0)
	}
}
