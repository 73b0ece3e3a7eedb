//go:build !linux

package redistest

import (
	"net"
	"os/exec"
)

// reserve reserves nothing: another process may take the port.
func reserve(addr string) (*port, error) {
	return &port{addr: addr, release: func() {}}, nil
}

func shutDown(*net.TCPListener) {}

// dieWithParent does nothing: only Linux ties a process to its parent.
func dieWithParent(*exec.Cmd) {}

// stopped cannot check, and trusts the signal.
func stopped(int) (bool, error) { return true, nil }
