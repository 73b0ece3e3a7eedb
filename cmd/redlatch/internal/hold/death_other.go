//go:build unix && !linux

package hold

import "syscall"

// dieWithParent does nothing: the guard kills the process.
func dieWithParent(*syscall.SysProcAttr) {}
