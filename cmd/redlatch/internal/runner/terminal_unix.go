//go:build unix

package runner

import (
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// terminal is standard input, when that is the terminal that controls us. All
// methods do nothing on a nil terminal.
type terminal struct {
	fd    int
	group int // our process group
}

// controlling returns the terminal, nil when there is none.
func controlling() *terminal {
	t := &terminal{fd: int(os.Stdin.Fd()), group: syscall.Getpgrp()}
	if _, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP); err != nil {
		return nil
	}
	return t
}

// isFront reports whether group is the one that the terminal talks to.
func (t *terminal) isFront(group int) bool {
	front, err := unix.IoctlGetInt(t.fd, unix.TIOCGPGRP)
	return err == nil && front == group
}

// give makes a command get the terminal as it starts, if it is ours to give.
func (t *terminal) give(attr *syscall.SysProcAttr) {
	if t != nil && t.isFront(t.group) {
		attr.Foreground, attr.Ctty = true, t.fd
	}
}

// handOver gives the terminal to group, if it is ours to give.
func (t *terminal) handOver(group int) {
	if t != nil && t.isFront(t.group) {
		t.set(group)
	}
}

// takeBack takes the terminal back from group, if group has it.
func (t *terminal) takeBack(group int) {
	if t != nil && t.isFront(group) {
		t.set(t.group)
	}
}

// set makes group the foreground group. A background process that does this is
// stopped unless it ignores SIGTTOU. That must not last: programs that we start
// would inherit it.
func (t *terminal) set(group int) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(t.fd, unix.TIOCSPGRP, group) // a terminal that hung up needs no foreground
}

// byTerminal reports whether a terminal stops processes with this signal.
func byTerminal(sig syscall.Signal) bool {
	return sig == syscall.SIGTSTP || sig == syscall.SIGTTIN || sig == syscall.SIGTTOU
}
