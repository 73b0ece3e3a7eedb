package hold

import (
	"errors"
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
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

func TestKernelKillsCommandWithRedlatchWithoutGuard(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	// The fifth field is the process group, whose number is the guard's.
	p := program.Start(t, s.URL(), "run", redistest.Key(t), "--", "sh", "-c",
		"read pid name state ppid group rest < /proc/$$/stat; echo $group; exec sleep 300")
	guard, err := strconv.Atoi(p.Line())
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(guard, syscall.SIGKILL))
	require.NoError(t, p.Cmd.Process.Kill())
	require.Empty(t, p.Rest())
	require.Equal(t, -1, p.Code())
}

func TestGuardRejectsManualStart(t *testing.T) {
	t.Parallel()
	program.Fails(t, program.NoServer(t), 125, "is started by redlatch run only", "__guard")
}

// leavesOrphans leaves orphans that exit immediately and orphans that exit concurrently with the
// command. It exits with 7, or with 9 if a zombie remains, which it detects with signal 0.
const leavesOrphans = `
pids=$(for i in 1 2 3 4 5 6 7 8; do sh -c 'sh -c "exit 3" >&- & echo $!'; done)
for pid in $pids; do
	n=0
	while kill -0 $pid 2>&-; do n=$((n+1)); [ $n -lt 300 ] || exit 9; sleep 0.05; done
done
for i in 1 2 3 4 5 6 7 8; do (exit 3 &); done
exit 7`

func TestRunAsPID1ReapsOrphans(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for range testlevel.Rounds(2, 5) {
		p := startAsProcess1(t, s.URL(), "run", redistest.Key(t), "--", "sh", "-c", leavesOrphans)
		got := p.Outcome(2 * program.Soon)
		require.Equal(t, program.Outcome{Code: 7}, got)
	}
}

// startAsProcess1 starts redlatch in a new PID namespace and, unless the user is root, in a user
// namespace.
func startAsProcess1(t *testing.T, url string, args ...string) *program.Process {
	t.Helper()
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID}
	if os.Getuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	}
	p, err := program.StartIn(t, attr, []string{"REDIS_URL=" + url}, args...)
	if errors.Is(err, syscall.EPERM) && os.Getenv("CI") != "true" {
		t.Skip("the system does not let this user make PID namespaces: ", err)
	}
	require.NoError(t, err)
	return p
}

func requireAlive(t *testing.T, w *watched) {
	t.Helper()
	select {
	case <-w.ended():
		require.Fail(t, "it is taken for dead")
	case <-time.After(3 * pollEvery):
	}
}

func awaitEnd(t *testing.T, w *watched) {
	t.Helper()
	select {
	case <-w.ended():
	case <-time.After(program.Soon):
		require.Fail(t, "the end of the process is not noticed")
	}
}

func TestProcessExitIsNoticedBeforeWait(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	w, err := watch(cmd.Process.Pid)
	require.NoError(t, err)
	requireAlive(t, w)
	require.NoError(t, w.signal(syscall.SIGTERM))
	awaitEnd(t, w)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.NoError(t, w.signal(syscall.SIGTERM), "it has ended")
}

func TestUnusedPIDIsNotWatched(t *testing.T) {
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

// firstThreadEnds makes the first thread of this program exit while others continue.
const firstThreadEnds = "REDLATCH_TEST_FIRST_THREAD_ENDS"

func init() {
	if os.Getenv(firstThreadEnds) == "" {
		return
	}
	go func() { time.Sleep(10 * program.Soon); os.Exit(0) }()
	runtime.LockOSThread() // init runs on the first thread
	_, _, _ = syscall.Syscall(syscall.SYS_EXIT, 0, 0, 0)
}

func TestProcessOutlivesItsFirstThread(t *testing.T) {
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
	requireAlive(t, w)
	require.NoError(t, cmd.Process.Kill())
	awaitEnd(t, w)
}
