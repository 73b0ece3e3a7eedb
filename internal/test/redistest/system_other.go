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

// StartOn starts cmd on any processors.
func StartOn(cmd *exec.Cmd, _ []int) error { return cmd.Start() }

func stopped(int) (bool, error) { return true, nil }
