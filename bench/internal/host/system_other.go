//go:build !linux

package host

import (
	"os"
	"time"
)

func processors() []int { return nil }

func sleepUntil(due time.Time) { time.Sleep(time.Until(due)) }

// CPUTime is unknown: 0.
func CPUTime(...*os.Process) time.Duration { return 0 }

// Runnable is unknown: false.
func Runnable(...*os.Process) bool { return false }

// Rest cannot stop a process.
func Rest(*os.Process) error { return nil }

// Wake does nothing.
func Wake(*os.Process) error { return nil }

// OwnCPUTime is unknown: 0.
func OwnCPUTime() time.Duration { return 0 }
