package cli

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// isInit is true for process 1 of a container. The kernel makes it the parent of every orphan,
// which stays a zombie until process 1 waits for it.
var isInit = os.Getpid() == 1

// init locks the main goroutine to the main thread for reaping.
func init() {
	if isInit {
		runtime.LockOSThread()
	}
}

// reaping returns the result of run. When running as process 1, it reaps orphans on the main thread
// until run returns.
//
// WNOTHREAD waits only for children of the calling thread. Because run starts no children on the
// main thread, reaping never takes the status of a child that run started.
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
