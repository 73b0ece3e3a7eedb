//go:build !linux

package host

import (
	"os"
	"time"
)

// CPUTime is unknown here: it is 0.
func CPUTime(...*os.Process) time.Duration { return 0 }

// Runnable is unknown here: it is false.
func Runnable(...*os.Process) bool { return false }

// Rest cannot stop a process here, which goes on.
func Rest(*os.Process) error { return nil }

// Wake has nothing to do: see Rest.
func Wake(*os.Process) error { return nil }
