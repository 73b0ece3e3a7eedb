package hold

import (
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
)

func TestTheEndOfAProcessIsNoticedBeforeItIsWaitedFor(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	w, err := watch(cmd.Process.Pid)
	require.NoError(t, err)
	select {
	case <-w.ended():
		require.Fail(t, "it is taken for dead")
	case <-time.After(2 * pollEvery):
	}
	require.NoError(t, w.signal(syscall.SIGTERM))
	select {
	case <-w.ended():
	case <-time.After(program.Soon):
		require.Fail(t, "the end of the process is not noticed")
	}
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.NoError(t, w.signal(syscall.SIGTERM), "it has ended")
}

func TestANumberWithoutAProcessIsNotWatched(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("true")
	require.NoError(t, cmd.Run())
	for _, pid := range []int{cmd.Process.Pid, -1} {
		_, err := watch(pid)
		require.ErrorIs(t, err, errNoProcess)
	}
	var none *watched
	require.Nil(t, none.ended())
}
