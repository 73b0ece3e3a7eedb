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

// StartOn starts cmd. Only Linux can choose processors, and tie a process to its parent.
func StartOn(cmd *exec.Cmd, _ []int) error { return cmd.Start() }

// stopped cannot check, and trusts the signal.
func stopped(int) (bool, error) { return true, nil }
