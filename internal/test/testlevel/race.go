//go:build race

package testlevel

// Race is true if the race detector is enabled.
const Race = true
