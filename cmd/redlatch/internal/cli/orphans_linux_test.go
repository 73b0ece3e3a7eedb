package cli

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// A child that has ended keeps its status for the goroutine that will wait for it. The test is not parallel, because it
// may run on a thread on which another test has started a child.
func TestReapOrphansSkipsChildrenOfOtherThreads(t *testing.T) { //nolint:paralleltest // see above
	started := make(chan *os.Process)
	waits := make(chan struct{})
	code := make(chan int)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "exit 3"}, &os.ProcAttr{})
		if err != nil {
			p = nil
		}
		started <- p
		<-waits
		state, err := p.Wait()
		if err != nil {
			code <- -1
			return
		}
		code <- state.ExitCode()
	}()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := <-started
	require.NotNil(t, p)
	var info unix.Siginfo
	require.NoError(t, unix.Waitid(unix.P_PID, p.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil))
	reapOrphans()
	close(waits)
	require.Equal(t, 3, <-code)
}
