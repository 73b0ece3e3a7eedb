//go:build unix

package work

import (
	"time"

	"golang.org/x/sys/unix"
)

// processorTime returns what this process has used, in user and kernel mode.
func processorTime() time.Duration {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
