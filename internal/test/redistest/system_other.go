//go:build !linux

package redistest

import (
	"net"
	"os/exec"
)

// reserve takes nothing: another process may take the port while it has no listener.
func reserve(addr string) (*port, error) {
	return &port{addr: addr, release: func() {}}, nil
}

// shutDown does nothing: other systems cannot shut a listener down.
func shutDown(*net.TCPListener) {}

// dieWithParent does nothing: only Linux can tie a process to its parent. A
// test binary that is killed here leaves its servers behind.
func dieWithParent(*exec.Cmd) {}

// stopped has no way to ask, and trusts that the signal worked at once.
func stopped(int) (bool, error) { return true, nil }
