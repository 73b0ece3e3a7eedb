package cli

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// isInit is true for process 1 in a container, which must wait for orphans.
var isInit = os.Getpid() == 1

// init locks the main goroutine to the main thread, which reaping requires.
func init() {
	if isInit {
		runtime.LockOSThread()
	}
}

// reaping returns the result of run. In process 1, it reaps orphans on the main thread until run
// returns.
//
// With WNOTHREAD, Wait4 waits only for children of the calling thread. Because run does not start
// children on the main thread, reaping cannot take the exit status of a child of run.
func reaping(run func() int) int {
	if !isInit {
		return run()
	}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	code := make(chan int, 1)
	go func() { code <- run() }()
	for {
		reapOrphans()
		select {
		case <-ended:
		case c := <-code:
			return c
		}
	}
}

func reapOrphans() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WNOTHREAD, nil)
		if pid <= 0 && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
