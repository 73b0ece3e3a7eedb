package hold

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

var errNoProcess = errors.New("there is no such process")

// watched is a process that is not a child. On Linux and Windows, which have process handles, it is
// never confused with a later process of the same number. A nil watched never ends.
type watched struct {
	process *os.Process
	done    chan struct{} // closed when the process has ended
}

// watch watches a process until this program ends.
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

// signal signals the process unless it has ended.
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
