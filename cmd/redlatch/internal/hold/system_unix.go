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

// shell is the command that reads a command line.
var shell = []string{"/bin/sh", "-c"}

// endWithChildren makes the command's timeout also kill its children.
func endWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}

// signals are the values of --on-lost-signal.
var signals = map[string]syscall.Signal{
	"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "KILL": syscall.SIGKILL,
}

// pollEvery is how often to poll a process that is not a child.
const pollEvery = 100 * time.Millisecond

func (w *watched) await() {
	for exists(w.process) && !isZombie(w.process.Pid) {
		time.Sleep(pollEvery)
	}
}

// exists reports whether the process exists, also as another user's.
func exists(p *os.Process) bool {
	err := p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, syscall.EPERM)
}

// isZombie reports, on Linux, whether a process has ended but was not waited for. A process whose
// first thread has ended while others run has the state of a zombie but has not ended.
func isZombie(pid int) bool {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	const state, threads = 0, 17
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // the name may contain anything
	return err == nil && len(fields) > threads && bytes.ContainsAny(fields[state], "ZX") && len(fields[threads]) == 1 && fields[threads][0] <= '1'
}
