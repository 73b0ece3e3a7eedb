//go:build unix

package redistest

import (
	"errors"
	"syscall"
	"time"
)

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

func (p *process) resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }
