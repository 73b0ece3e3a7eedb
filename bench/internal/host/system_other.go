//go:build !linux

package host

import (
	"os"
	"os/exec"
	"time"
)

// startOn cannot choose processors here, and is never asked to: see processors.
func startOn(cmd *exec.Cmd, _ []int) error { return cmd.Start() }

// processors knows none, so that nothing is placed.
func processors() []int { return nil }

// sleepUntil sleeps as exactly as the runtime can.
func sleepUntil(due time.Time) { time.Sleep(time.Until(due)) }

// CPUTime is unknown here: it is 0.
func CPUTime(...*os.Process) time.Duration { return 0 }

// Runnable is unknown here: it is false.
func Runnable(...*os.Process) bool { return false }

// Rest cannot stop a process here, which goes on.
func Rest(*os.Process) error { return nil }

// Wake has nothing to do: see Rest.
func Wake(*os.Process) error { return nil }

// OwnCPUTime is unknown here: it is 0.
func OwnCPUTime() time.Duration { return 0 }
