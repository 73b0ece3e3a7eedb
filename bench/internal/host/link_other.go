//go:build !linux

package host

import "time"

// sleepUntil sleeps as exactly as the runtime can.
func sleepUntil(due time.Time) { time.Sleep(time.Until(due)) }
