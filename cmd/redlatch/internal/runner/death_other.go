//go:build unix && !linux

package runner

import "syscall"

// dieWithParent does nothing where the kernel offers nothing: the guard does it.
func dieWithParent(*syscall.SysProcAttr) {}
