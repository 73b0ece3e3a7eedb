//go:build unix && !linux

package process

import (
	"errors"
	"syscall"
)

// byNumber is a process that is known by its number alone.
type byNumber struct {
	pid  int
	stop chan struct{}
}

func watch(pid int) (watched, error) {
	b := &byNumber{pid: pid, stop: make(chan struct{})}
	if !b.there() {
		return nil, ErrNone
	}
	return b, nil
}

// there reports whether a process has the number, be it that of another user.
func (b *byNumber) there() bool {
	err := syscall.Kill(b.pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}

func (b *byNumber) await() { poll(pollEvery, b.stop, b.there) }

func (b *byNumber) signal(number int) error { return syscall.Kill(b.pid, syscall.Signal(number)) }

func (b *byNumber) close() { close(b.stop) }
