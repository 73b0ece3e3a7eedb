//go:build unix && !linux

package hold

import "syscall"

func dieWithParent(*syscall.SysProcAttr) {}
