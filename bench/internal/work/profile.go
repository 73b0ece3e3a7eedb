package work

import (
	"os"
	"runtime/pprof"
)

// profile writes a profile of the processor's time to a file until the function that it
// returns is called. Without a file it does nothing.
func profile(file string) (stop func() error, err error) {
	if file == "" {
		return func() error { return nil }, nil
	}
	f, err := os.Create(file) //nolint:gosec // where its user wants it
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		return f.Close()
	}, nil
}
