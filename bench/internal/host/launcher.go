package host

import (
	"os/exec"
	"runtime"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// Launcher starts processes on a single thread, because a process inherits the thread's CPU affinity and, on Linux,
// is killed when that thread exits.
type Launcher struct {
	starts chan start
	done   chan struct{}
}

type start struct {
	cmd  *exec.Cmd
	cpus []int
	err  chan error
}

// NewLauncher starts the launcher's goroutine, which runs until Close.
func NewLauncher() *Launcher {
	l := &Launcher{starts: make(chan start), done: make(chan struct{})}
	go l.run()
	return l
}

// Close stops the launcher and, on Linux, the processes that it started.
func (l *Launcher) Close() {
	close(l.starts)
	<-l.done
}

// Start starts cmd on the given processors, or on any processor if cpus is empty.
func (l *Launcher) Start(cmd *exec.Cmd, cpus []int) error {
	s := start{cmd: cmd, cpus: cpus, err: make(chan error, 1)}
	l.starts <- s
	return <-s.err
}

func (l *Launcher) run() {
	defer close(l.done)
	// The thread is never unlocked, because its affinity may have changed.
	runtime.LockOSThread()
	for s := range l.starts {
		s.err <- redistest.StartOn(s.cmd, s.cpus)
	}
}

// Placement determines where the clients and the server run.
type Placement string

const (
	// Apart pins the server to one CPU and the clients to the others.
	Apart Placement = "apart"
	// Free lets the operating system choose.
	Free Placement = "free"
)

// Possible reports whether this machine has enough processors for p.
func (p Placement) Possible() bool { return p != Apart || len(processors()) >= 2 }

// Server returns the processors for the server, or nil for any.
func (p Placement) Server() []int {
	if p != Apart {
		return nil
	}
	return processors()[:1]
}

// Clients returns the processors for the clients, or nil for any.
func (p Placement) Clients() []int {
	if p != Apart {
		return nil
	}
	return processors()[1:]
}
