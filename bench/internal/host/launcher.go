package host

import (
	"os/exec"
	"runtime"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// Launcher starts processes. One thread starts all of them until Close, because a process inherits
// that thread's processors and on Linux ends with it.
type Launcher struct {
	starts chan start
	done   chan struct{}
}

type start struct {
	cmd  *exec.Cmd
	cpus []int
	err  chan error
}

// NewLauncher returns a launcher with one goroutine.
func NewLauncher() *Launcher {
	l := &Launcher{starts: make(chan start), done: make(chan struct{})}
	go l.run()
	return l
}

// Close ends the launcher and, on Linux, the processes that it started.
func (l *Launcher) Close() {
	close(l.starts)
	<-l.done
}

// Start starts cmd on these processors, or on any if none are given.
func (l *Launcher) Start(cmd *exec.Cmd, cpus []int) error {
	s := start{cmd: cmd, cpus: cpus, err: make(chan error, 1)}
	l.starts <- s
	return <-s.err
}

func (l *Launcher) run() {
	defer close(l.done)
	// Never unlocked: the thread may be left with fewer processors than before, so
	// it ends with this goroutine.
	runtime.LockOSThread()
	for s := range l.starts {
		s.err <- redistest.StartOn(s.cmd, s.cpus)
	}
}

// Placement is where clients and server run.
type Placement string

// Placements.
const (
	// Apart pins the server to one CPU and the clients to the others.
	Apart Placement = "apart"
	// Free leaves it to the system.
	Free Placement = "free"
)

// Possible reports whether this machine can place processes in this way.
func (p Placement) Possible() bool { return p != Apart || len(processors()) >= 2 }

// Server returns the processors for the server; none means any.
func (p Placement) Server() []int {
	if p != Apart {
		return nil
	}
	return processors()[:1]
}

// Clients returns the processors for the clients; none means any.
func (p Placement) Clients() []int {
	if p != Apart {
		return nil
	}
	return processors()[1:]
}
