//go:build !race

package testlevel

// Race is true in a binary with the race detector.
const Race = false
