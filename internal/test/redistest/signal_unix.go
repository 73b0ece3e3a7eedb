//go:build unix

package redistest

import (
	"errors"
	"syscall"
	"time"
)

// pause freezes the process and returns when it stands still.
func (p *process) pause() error {
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for deadline := time.Now().Add(ioTimeout); time.Now().Before(deadline); {
		if ok, err := stopped(p.pid()); ok || err != nil {
			return err
		}
		time.Sleep(100 * time.Microsecond)
	}
	return errors.New("still running after SIGSTOP")
}

// resume lets the process go on.
func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
