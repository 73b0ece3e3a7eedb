//go:build unix

package runner

import (
	"os"
	"syscall"
)

var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// Code returns the exit code of a program that sig ended, as a shell gives it.
func Code(sig os.Signal) int {
	if number, ok := sig.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return CodeFailed
}
