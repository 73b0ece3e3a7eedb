package hold

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// errNoProcess means that there is no process with a number.
var errNoProcess = errors.New("there is no such process")

// watched is a process that is no child of this one. Where the system has handles for processes, as
// Linux and Windows do, another process that gets its number later is not taken for it. A nil
// watched process never ends.
type watched struct {
	process *os.Process
	done    chan struct{} // closed when the process has ended
}

// watch begins to watch the process with a number, until this program ends.
func watch(pid int) (*watched, error) {
	p, err := os.FindProcess(pid)
	if err != nil || !exists(p) {
		return nil, fmt.Errorf("%d: %w", pid, errNoProcess)
	}
	w := &watched{process: p, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.await()
	}()
	return w, nil
}

// ended returns a channel that is closed when the process has ended.
func (w *watched) ended() <-chan struct{} {
	if w == nil {
		return nil
	}
	return w.done
}

// signal sends a signal to the process, unless it has ended.
func (w *watched) signal(s syscall.Signal) error {
	err := w.process.Signal(s)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("process %d could not be signalled: %w", w.process.Pid, err)
	}
	return nil
}
