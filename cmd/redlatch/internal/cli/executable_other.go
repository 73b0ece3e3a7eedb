//go:build !linux

package cli

import "os"

// Executable returns the path of this program.
func Executable() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}
