package hold

import (
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
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

// firstThreadEnds makes this program one whose first thread ends at once, while others go on.
const firstThreadEnds = "REDLATCH_TEST_FIRST_THREAD_ENDS"

func init() {
	if os.Getenv(firstThreadEnds) == "" {
		return
	}
	go func() { time.Sleep(10 * program.Soon); os.Exit(0) }()
	runtime.LockOSThread() // init runs on the first thread
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
}

func TestAProcessWhoseFirstThreadHasEndedGoesOn(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), firstThreadEnds+"=1")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	stat := "/proc/" + strconv.Itoa(cmd.Process.Pid) + "/stat"
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(stat)
		return err == nil && strings.Contains(string(text), ") Z ")
	}, program.Soon, program.PollEvery)
	w, err := watch(cmd.Process.Pid)
	require.NoError(t, err)
	select {
	case <-w.ended():
		require.Fail(t, "it is taken for dead")
	case <-time.After(3 * pollEvery):
	}
	require.NoError(t, cmd.Process.Kill())
	select {
	case <-w.ended():
	case <-time.After(program.Soon):
		require.Fail(t, "the end of the process is not noticed")
	}
}
