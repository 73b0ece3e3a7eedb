//go:build unix && !linux

package runner

import (
	"os"
	"syscall"
)

// dieWithParent does nothing where the kernel offers nothing: the guard does it.
func dieWithParent(*syscall.SysProcAttr) {}

// Self returns the path of this program.
func Self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}
