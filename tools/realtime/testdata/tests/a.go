package a

import "time"

func WithLease(time.Duration) {}

// Only tests are checked.
func nap() { time.Sleep(time.Second) }
