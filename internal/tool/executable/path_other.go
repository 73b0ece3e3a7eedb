//go:build !linux

package executable

import "os"

// Path returns the path of this program.
func Path() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}
