//go:build !race

package rfairlock_test

const raceEnabled = false
