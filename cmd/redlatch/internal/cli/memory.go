package cli

import (
	"os"
	"runtime/debug"
)

// CollectOften runs the garbage collector at half the growth, unless GOGC or GOMEMLIMIT is set: scans of
// many locks make much garbage, and little of it is kept.
func CollectOften() {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetGCPercent(50)
	}
}
