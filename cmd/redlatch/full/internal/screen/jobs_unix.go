//go:build unix

package screen

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyContinued notifies about the end of a stop, during which a shell has used the terminal.
func notifyContinued(c chan<- os.Signal) { signal.Notify(c, syscall.SIGCONT) }

// stopJob stops the process group, as a terminal does when it is not raw.
func stopJob() { _ = syscall.Kill(0, syscall.SIGTSTP) }
