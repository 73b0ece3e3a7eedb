package cli

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// isInit is true for process 1 of a container. The kernel makes it the parent of every process
// whose own parent has ended, and such a process stays a zombie until process 1 waits for it.
var isInit = os.Getpid() == 1

// init locks the main goroutine to the main thread, see reaping.
func init() {
	if isInit {
		runtime.LockOSThread()
	}
}

// reaping runs run and returns its result. In process 1 it waits for orphans until then, on the
// main thread.
//
// It never takes the status of a child that run started. For the kernel a child belongs to the
// thread that started it, as long as that thread lives, and orphans belong to the main thread.
// WNOTHREAD waits for children of the calling thread only, and run starts none on the main thread,
// which this goroutine has to itself.
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

// reapOrphans waits for all orphans that have ended.
func reapOrphans() {
	for {
		pid, err := unix.Wait4(-1, nil, unix.WNOHANG|unix.WNOTHREAD, nil)
		if pid <= 0 && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
