package process

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// watch opens a pidfd, or falls back on the start time.
func watch(pid int) (watched, error) {
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	switch {
	case err == nil:
		return byFD{os.NewFile(uintptr(fd), "pidfd")}, nil
	case errors.Is(err, unix.ESRCH):
		return nil, ErrNone
	}
	return newByTime(pid, pollEvery)
}

// byFD is a process with its pidfd, which can be read when the process has ended. It has the
// runtime's poller wait for that.
type byFD struct{ file *os.File }

func (b byFD) await() {
	conn, err := b.file.SyscallConn()
	if err != nil {
		return // closed
	}
	_ = conn.Read(func(fd uintptr) bool { // fails when it is closed
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n == 1 && err == nil
	})
}

func (b byFD) signal(number int) error {
	conn, err := b.file.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	if err := conn.Control(func(fd uintptr) {
		sent = unix.PidfdSendSignal(int(fd), syscall.Signal(number), nil, 0)
	}); err != nil {
		return err
	}
	return sent
}

func (b byFD) close() { _ = b.file.Close() } // nothing is buffered

// byTime is a process with the time at which it was started: another one with its number has
// another.
type byTime struct {
	pid   int
	began string
	every time.Duration
	stop  chan struct{}
}

func newByTime(pid int, every time.Duration) (watched, error) {
	began, ok := startTime(pid)
	if !ok {
		return nil, ErrNone
	}
	return &byTime{pid: pid, began: began, every: every, stop: make(chan struct{})}, nil
}

func (b *byTime) there() bool {
	began, ok := startTime(b.pid)
	return ok && began == b.began
}

func (b *byTime) await() { poll(b.every, b.stop, b.there) }

func (b *byTime) signal(number int) error {
	if !b.there() {
		return ErrNone
	}
	return syscall.Kill(b.pid, syscall.Signal(number))
}

func (b *byTime) close() { close(b.stop) }

// startTime returns when a process was started, in ticks since the machine was, and whether it is
// there and has not ended.
func startTime(pid int) (string, bool) {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return "", false
	}
	// The name is in parentheses and may have any, and blanks.
	const state, began = 0, 19
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) <= began || fields[state] == "Z" || fields[state] == "X" {
		return "", false
	}
	return fields[began], true
}
