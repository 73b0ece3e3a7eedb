package process

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const soon = 10 * time.Second

// sleeper starts a process that sleeps, and returns it.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func awaits(t *testing.T, p *Process) {
	t.Helper()
	select {
	case <-p.Done():
	case <-time.After(soon):
		require.Fail(t, "the end of the process is not noticed")
	}
}

// both are the ways to watch a process on Linux.
func both(t *testing.T, pid int) map[string]*Process {
	t.Helper()
	first, err := Open(pid)
	require.NoError(t, err)
	require.IsType(t, byFD{}, first.by)
	by, err := newByTime(pid, time.Millisecond)
	require.NoError(t, err)
	second := start(pid, by)
	t.Cleanup(first.Close)
	t.Cleanup(second.Close)
	return map[string]*Process{"pidfd": first, "start time": second}
}

func TestTheEndOfAProcessIsNoticedBeforeItIsWaitedFor(t *testing.T) {
	t.Parallel()
	cmd := sleeper(t)
	watched := both(t, cmd.Process.Pid)
	for what, p := range watched {
		select {
		case <-p.Done():
			require.Fail(t, "it is taken for dead", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
	require.NoError(t, watched["pidfd"].Signal(int(syscall.SIGTERM)))
	for _, p := range watched {
		awaits(t, p)
	}
	require.ErrorIs(t, watched["start time"].Signal(int(syscall.SIGTERM)), ErrNone, "it is a zombie")
}

func TestWatchingEndsWithClose(t *testing.T) {
	t.Parallel()
	for _, p := range both(t, sleeper(t).Process.Pid) {
		p.Close()
		p.Close()
		awaits(t, p)
	}
	var none *Process
	none.Close()
	require.Nil(t, none.Done())
}

func TestANumberThatIsUsedAgainIsNotTakenForTheProcess(t *testing.T) {
	t.Parallel()
	// This process has the number, and another start time.
	by := &byTime{pid: os.Getpid(), began: "1", every: time.Hour, stop: make(chan struct{})}
	require.ErrorIs(t, by.signal(int(syscall.SIGKILL)), ErrNone)
	awaits(t, start(os.Getpid(), by))
}

func TestThereIsNoSuchProcess(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("true")
	require.NoError(t, cmd.Run())
	for _, pid := range []int{cmd.Process.Pid, 0, -1} {
		_, err := Open(pid)
		require.ErrorIs(t, err, ErrNone)
	}
	_, err := newByTime(cmd.Process.Pid, time.Second)
	require.ErrorIs(t, err, ErrNone)
}
