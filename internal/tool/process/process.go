// Package process watches a process that is no child of this one, by its number, until it ends.
//
//	Open(pid) ─▶ Process.Done, closed when it has ended
//	          └▶ Process.Signal
//
// A number is used again after its process has ended. On Linux that is no danger: a process is
// watched through a pidfd, or, where the kernel or a container refuses one, by its start time. On
// Windows a handle keeps the number from being used again. On other systems a process is looked
// for once a second, and another one with its number within that second is taken for it.
package process

import (
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrNone means that there is no process with the number.
var ErrNone = errors.New("there is no such process")

// pollEvery is how often a process is looked for where the system does not tell of its end.
const pollEvery = time.Second

// watched is what a system offers for one process. Its functions may be called at the same time.
type watched interface {
	// await returns when the process has ended, or after close.
	await()
	// signal sends a signal to this process and to no other.
	signal(number int) error
	// close makes await return, where the system can.
	close()
}

// Process is a process that is watched. Its methods may be called at the same time.
type Process struct {
	// PID is its number.
	PID int

	by   watched
	done chan struct{}
	once sync.Once
}

// Open begins to watch the process with the number pid. Its errors wrap ErrNone when there is
// none. Close ends the watching.
func Open(pid int) (*Process, error) {
	if pid < 1 {
		return nil, fmt.Errorf("%d: %w", pid, ErrNone)
	}
	by, err := watch(pid)
	if err != nil {
		return nil, fmt.Errorf("%d: %w", pid, err)
	}
	return start(pid, by), nil
}

func start(pid int, by watched) *Process {
	p := &Process{PID: pid, by: by, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		by.await()
	}()
	return p
}

// Done returns a channel that is closed when the process has ended, or after Close. It is nil,
// which is never ready, for a nil Process.
func (p *Process) Done() <-chan struct{} {
	if p == nil {
		return nil
	}
	return p.done
}

// Signal sends the signal of this number. The error is that of the system.
func (p *Process) Signal(number int) error { return p.by.signal(number) }

// Close ends the watching. It does nothing to a nil Process.
func (p *Process) Close() {
	if p != nil {
		p.once.Do(p.by.close)
	}
}

// poll looks for a process from time to time until there is none, or stop is closed.
func poll(every time.Duration, stop <-chan struct{}, there func() bool) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for there() {
		select {
		case <-tick.C:
		case <-stop:
			return
		}
	}
}
