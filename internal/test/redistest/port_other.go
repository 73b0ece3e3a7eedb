//go:build !linux

package redistest

import "net"

// reserve takes nothing: another process may take the port while it has no listener.
func reserve(addr string) (*port, error) {
	return &port{addr: addr, release: func() {}}, nil
}

// shutDown does nothing: other systems cannot shut a listener down.
func shutDown(*net.TCPListener) {}
