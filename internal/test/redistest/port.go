package redistest

import (
	"context"
	"io"
	"net"
	"testing"
)

// claimPort prevents other processes that use this package from taking a port while its server is down. It binds a UDP
// socket, because a TCP socket, such as that of reserve, would prevent the server itself from listening again.
func claimPort(port int) (io.Closer, error) {
	return new(net.ListenConfig).ListenPacket(context.Background(), "udp", loopback(port))
}

// UnusedPort returns a free loopback port that is reserved by claimPort until the test ends.
func UnusedPort(tb testing.TB) int {
	tb.Helper()
	for range startAttempts {
		port := FreePort()
		if claimed, err := claimPort(port); err == nil {
			tb.Cleanup(func() { _ = claimed.Close() })
			return port
		}
	}
	tb.Fatalf("redistest: no port is free")
	return 0
}

func isFree(port int) bool {
	claimed, err := claimPort(port)
	if err != nil {
		return false
	}
	defer func() { _ = claimed.Close() }()
	l, err := net.Listen("tcp", loopback(port))
	if err != nil {
		return false
	}
	stopListening(l)
	return true
}

// port is a TCP port that stays reserved while it has no listener, so that no other server takes it.
type port struct {
	addr    string
	config  net.ListenConfig
	release func()
}

// listen opens a listener. There must be at most one open listener at a time.
func (p *port) listen() (net.Listener, error) {
	return p.config.Listen(context.Background(), "tcp", p.addr)
}

// Refusing returns an address in the form host:port that refuses connections.
func Refusing(tb testing.TB) string {
	tb.Helper()
	var err error
	for range startAttempts {
		var p *port
		if p, err = reserve(loopback(FreePort())); err == nil {
			tb.Cleanup(p.release)
			return p.addr
		}
	}
	tb.Fatalf("redistest: no port is free: %v", err)
	return ""
}

func (p *Proxy) settle() (l net.Listener, err error) {
	for range startAttempts {
		if p.port, err = reserve(loopback(FreePort())); err != nil {
			continue
		}
		if l, err = p.port.listen(); err == nil {
			p.addr = p.port.addr
			p.tb.Cleanup(p.port.release)
			return l, nil
		}
		p.port.release()
	}
	return nil, err
}

// stopListening closes l. It first shuts down the socket, because processes that are being forked have copies of l.
func stopListening(l net.Listener) {
	shutDown(l.(*net.TCPListener))
	_ = l.Close()
}
