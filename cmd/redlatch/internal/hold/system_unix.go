//go:build unix

package hold

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// shell is what reads a command line.
var shell = []string{"/bin/sh", "-c"}

// endWithChildren makes the end of a command's time that of its children, too.
func endWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// signals are the values of --on-lost-signal.
var signals = map[string]syscall.Signal{
	"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "KILL": syscall.SIGKILL,
}

// pollEvery is how often a process is looked for that is no child.
const pollEvery = 100 * time.Millisecond

// await returns when the process has ended.
func (w *watched) await() {
	for exists(w.process) && !isZombie(w.process.Pid) {
		time.Sleep(pollEvery)
	}
}

// exists reports whether there is a process, be it that of another user.
func exists(p *os.Process) bool {
	err := p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, syscall.EPERM)
}

// isZombie reports whether a process has ended that its parent has not waited for, where the
// system says so, as Linux does. One whose first thread has ended while others run has the state
// of a zombie, too, and has not ended.
func isZombie(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	const state, threads = 0, 17
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // the name may have any, and blanks
	return err == nil && len(fields) > threads && bytes.ContainsAny(fields[state], "ZX") && len(fields[threads]) == 1 && fields[threads][0] <= '1'
}
