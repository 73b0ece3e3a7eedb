//go:build unix

package run

import (
	"os/exec"
	"syscall"
)

// shell is what reads a command line.
var shell = []string{"/bin/sh", "-c"}

// endWithChildren makes the end of a command's time that of its children, too.
func endWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
