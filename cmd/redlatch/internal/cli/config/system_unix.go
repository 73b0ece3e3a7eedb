//go:build unix

package config

import (
	"io/fs"
	"os"
	"os/exec"
	"syscall"
)

// ownedByOther reports whether the owner is neither this user nor root.
func ownedByOther(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid()
}

// giveTo gives f the owner and the group of another file.
func giveTo(f *os.File, of fs.FileInfo) error {
	stat, ok := of.Sys().(*syscall.Stat_t)
	if !ok {
		return nil
	}
	return f.Chown(int(stat.Uid), int(stat.Gid))
}

// endWithChildren makes a timeout also kill the command's children.
func endWithChildren(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
