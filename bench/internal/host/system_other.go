//go:build !linux

package host

import (
	"os"
	"time"
)

func processors() []int { return nil }

func sleepUntil(due time.Time) { time.Sleep(time.Until(due)) }

// CPUTime returns 0 on this system.
func CPUTime(...*os.Process) time.Duration { return 0 }

// Runnable returns false on this system.
func Runnable(...*os.Process) bool { return false }

// Rest does nothing.
func Rest(*os.Process) error { return nil }

// Wake does nothing.
func Wake(*os.Process) error { return nil }

// OwnCPUTime returns 0 on this system.
func OwnCPUTime() time.Duration { return 0 }
