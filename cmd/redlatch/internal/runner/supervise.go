package runner

import (
	"context"
	"os"
	"time"
)

// End is how a command ended.
type End struct {
	// Code is the command's exit code, 128 plus the signal's number when a
	// signal ended it.
	Code int
	// Lost says that the lock was lost before the command had ended.
	Lost bool
}

// Supervise waits for the command to end, passing on what arrives on signals.
// held is the context of the lock's hold: when it ends first, so does the
// command, by SIGTERM and, after grace, SIGKILL. Supervise returns when the
// command itself has ended.
func Supervise(held context.Context, p *Process, signals <-chan os.Signal, grace time.Duration) End {
	defer p.release()
	for {
		select {
		case <-p.done:
			return End{Code: p.code, Lost: held.Err() != nil}
		case <-held.Done():
			p.end(grace)
			return End{Code: p.code, Lost: true}
		case sig := <-signals:
			p.pass(sig)
		case <-p.stops:
			p.suspend(held)
		}
	}
}

// end ends the command and what else runs in its group.
func (p *Process) end(grace time.Duration) {
	kill := time.NewTimer(grace)
	defer kill.Stop()
	p.terminate()
	// The command's children may outlive it, and have the same time to leave.
	<-kill.C
	p.kill()
	<-p.done
}
