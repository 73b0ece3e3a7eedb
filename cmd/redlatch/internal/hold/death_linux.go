package hold

import "syscall"

// dieWithParent makes the kernel kill the process when the thread that started it exits.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }
