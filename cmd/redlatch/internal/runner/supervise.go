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

// Action is what to do with a command whose lock is lost.
type Action int

const (
	// Terminate sends SIGTERM to the command's group and, after the grace, SIGKILL.
	Terminate Action = iota
	// Kill sends SIGKILL at once.
	Kill
	// Ignore lets the command go on without the lock.
	Ignore
)

// Supervise waits for the command to end, passing on what arrives on signals.
// held is the context of the lock's hold: when it ends first, so does the
// command, as onLoss says, with the grace from SIGTERM to SIGKILL. Supervise returns when the command itself has ended.
func Supervise(held context.Context, p *Process, signals <-chan os.Signal, onLoss Action, grace time.Duration) End {
	defer p.release()
	watched := held
	if onLoss == Ignore {
		watched = context.Background()
	}
	for {
		select {
		case <-p.done:
			return End{Code: p.code, Lost: held.Err() != nil}
		case <-watched.Done():
			p.end(onLoss, grace)
			return End{Code: p.code, Lost: true}
		case sig := <-signals:
			p.pass(sig)
		case <-p.stops:
			p.suspend(watched)
		}
	}
}

// end ends the command and what else runs in its group.
func (p *Process) end(onLoss Action, grace time.Duration) {
	if onLoss == Terminate {
		p.terminate()
		// The command's children may outlive it, and have the same time to leave.
		kill := time.NewTimer(grace)
		defer kill.Stop()
		<-kill.C
	}
	p.kill()
	<-p.done
}
