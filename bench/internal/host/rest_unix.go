//go:build unix

package host

import (
	"os"
	"syscall"
)

// Rest stops a process until Wake: it takes no processor time and knows nothing of the
// time that passes.
func Rest(p *os.Process) error { return p.Signal(syscall.SIGSTOP) }

// Wake lets a process go on that rests.
func Wake(p *os.Process) error { return p.Signal(syscall.SIGCONT) }
