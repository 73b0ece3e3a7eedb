//go:build !unix

package host

import "os"

// Rest cannot stop a process here, which goes on.
func Rest(*os.Process) error { return nil }

// Wake has nothing to do: see Rest.
func Wake(*os.Process) error { return nil }
