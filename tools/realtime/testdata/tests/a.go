package a

import "time"

func WithLease(time.Duration) {}

// Product code may do what it wants.
func nap() { time.Sleep(time.Second) }
