//go:build !linux

package cli

// reaping runs run: containers are Linux.
func reaping(run func() int) int { return run() }
