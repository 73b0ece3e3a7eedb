//go:build unix

package hold

import "syscall"

// signals are the values of --on-lost-signal.
var signals = map[string]syscall.Signal{
	"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP,
	"USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2, "KILL": syscall.SIGKILL,
}

// signalNames are they, in the order in which they are offered.
var signalNames = []string{"TERM", "INT", "HUP", "USR1", "USR2", "KILL"}
