package process

import (
	"errors"
	"os"
	"syscall"
)

// byHandle is a process with a handle.
type byHandle struct{ proc *os.Process }

func watch(pid int) (watched, error) {
	proc, err := os.FindProcess(pid)
	if err != nil {
		return nil, ErrNone
	}
	return byHandle{proc}, nil
}

func (b byHandle) await() { _, _ = b.proc.Wait() } // it need not be a child here

// signal can end a process, and nothing else.
func (b byHandle) signal(number int) error {
	if syscall.Signal(number) != syscall.SIGKILL {
		return errors.ErrUnsupported
	}
	return b.proc.Kill()
}

// close does nothing: the wait goes on until the process, or this program, ends.
func (b byHandle) close() {}
