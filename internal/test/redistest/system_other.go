//go:build !linux

package redistest

import (
	"net"
	"os/exec"
)

// reserve does not reserve the port, so another process may take it.
func reserve(addr string) (*port, error) {
	return &port{addr: addr, release: func() {}}, nil
}

func shutDown(*net.TCPListener) {}

// StartOn starts cmd. It ignores the processors.
func StartOn(cmd *exec.Cmd, _ []int) error { return cmd.Start() }

func stopped(int) (bool, error) { return true, nil }
