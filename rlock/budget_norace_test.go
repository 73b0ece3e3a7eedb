//go:build !race

package rlock_test

const raceEnabled = false
