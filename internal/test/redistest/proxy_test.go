package redistest

import (
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

const soon = 10 * time.Second

// through returns the shared server, a proxy for it and a key.
func through(t *testing.T) (*Server, *Proxy, string) {
	t.Helper()
	s := Shared(t)
	return s, NewProxy(t, s.Addr()), Key(t)
}

func dial(t *testing.T, addr string, opts ...redis.DialOption) redis.Conn {
	t.Helper()
	c, err := redis.Dial("tcp", addr, append([]redis.DialOption{redis.DialReadTimeout(soon)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// send sends a command without waiting for the reply.
func send(t *testing.T, c redis.Conn, cmd string, args ...any) {
	t.Helper()
	require.NoError(t, c.Send(cmd, args...))
	require.NoError(t, c.Flush())
}

func eventually(t *testing.T, ok func() bool, what string) {
	t.Helper()
	require.Eventually(t, ok, soon, time.Millisecond, what)
}

func awaitHolding(t *testing.T, p *Proxy, dir Direction) {
	t.Helper()
	eventually(t, func() bool { return p.Holding(dir) > 0 }, "the proxy never held anything")
}

func exists(t *testing.T, s *Server, key string) bool {
	t.Helper()
	return s.Do(t, "EXISTS", key).(int64) == 1
}

func TestBlackholeHoldsBothDirectionsUntilHealed(t *testing.T) {
	t.Parallel()
	s, p, key := through(t)
	c := dial(t, p.Addr())
	p.Blackhole()
	send(t, c, "SET", key, "v")
	awaitHolding(t, p, ToServer)
	require.False(t, exists(t, s, key))
	p.Heal(ToServer)
	awaitHolding(t, p, ToClient)
	require.True(t, exists(t, s, key))
	p.Heal()
	_, err := c.Receive()
	require.NoError(t, err)
}

func TestBlackholeHidesServerExit(t *testing.T) {
	t.Parallel()
	s := Start(t)
	p := NewProxy(t, s.Addr())
	raw, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	defer func() { _ = raw.Close() }()
	_, err = raw.Write([]byte("PING\r\n"))
	require.NoError(t, err)
	_, err = io.ReadFull(raw, make([]byte, len("+PONG\r\n")))
	require.NoError(t, err)

	p.Blackhole(ToClient)
	s.Kill()
	require.NoError(t, raw.SetReadDeadline(time.Now().Add(50*time.Millisecond)))
	_, err = raw.Read(make([]byte, 1))
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	p.Heal(ToClient)
	require.NoError(t, raw.SetReadDeadline(time.Now().Add(soon)))
	_, err = raw.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}

func TestHeldBytesOfClosedClientAreDropped(t *testing.T) {
	t.Parallel()
	s, p, key := through(t)
	c := dial(t, p.Addr())
	p.Blackhole(ToServer)
	send(t, c, "SET", key, "v")
	awaitHolding(t, p, ToServer)
	require.NoError(t, c.Close())
	eventually(t, func() bool { return p.Holding(ToServer) == 0 }, "held for a client that has gone")
	p.Heal()
	_, err := dial(t, p.Addr()).Do("PING")
	require.NoError(t, err)
	require.False(t, exists(t, s, key))
}

func TestKeepHalfDeadDeliversHeldBytes(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"client closes", "client reset"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			s, p, key := through(t)
			p.KeepHalfDead(true)
			c := dial(t, p.Addr())
			p.Blackhole(ToServer)
			send(t, c, "SET", key, "v")
			awaitHolding(t, p, ToServer)
			if end == "client closes" {
				require.NoError(t, c.Close())
			} else {
				p.Reset()
			}
			eventually(t, func() bool { return p.Connections() == 0 }, "the client is still there")
			require.False(t, exists(t, s, key))
			p.Heal(ToServer)
			eventually(t, func() bool { return exists(t, s, key) }, "the command was lost")
		})
	}
}

func TestHeldConnectionWithBothSidesClosedIsDropped(t *testing.T) {
	t.Parallel()
	s := Start(t)
	p := NewProxy(t, s.Addr())
	c := dial(t, p.Addr())
	_, err := c.Do("PING")
	require.NoError(t, err)
	p.Blackhole(ToClient)
	s.Kill()
	eventually(t, func() bool { return p.sawEnd(ToClient) }, "the end of the server was not seen")
	require.Equal(t, 1, p.Connections())
	require.NoError(t, c.Close())
	eventually(t, func() bool { return p.linkCount() == 0 }, "the connection is kept")
}

func (p *Proxy) linkCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// sawEnd reports whether a connection has ended in the given direction.
func (p *Proxy) sawEnd(dir Direction) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if l.pipes[dir].ended {
			return true
		}
	}
	return false
}

func TestLatencyDelaysOneDirection(t *testing.T) {
	t.Parallel()
	for _, dir := range []Direction{ToServer, ToClient} {
		_, p, _ := through(t)
		c := dial(t, p.Addr())
		p.Latency(dir, time.Millisecond)
		_, err := c.Do("PING")
		require.NoError(t, err, "it arrives")

		// A change applies only to later traffic.
		p.Latency(dir, time.Hour)
		send(t, c, "PING")
		awaitHolding(t, p, dir)
		p.Latency(dir, 0)
		_, err = dial(t, p.Addr()).Do("PING")
		require.NoError(t, err)
		require.Positive(t, p.Holding(dir))
	}
}

func TestResetCutsConnectionsWithRST(t *testing.T) {
	t.Parallel()
	_, p, _ := through(t)
	c := dial(t, p.Addr())
	_, err := c.Do("PING")
	require.NoError(t, err)
	p.Reset()
	_, err = c.Receive()
	require.ErrorIs(t, err, syscall.ECONNRESET)
	_, err = dial(t, p.Addr()).Do("PING")
	require.NoError(t, err)
}

// dialOther connects to addr. It retries if the socket has connected to itself because its local port is the same.
func dialOther(addr string) error {
	for {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		self := conn.LocalAddr().String() == addr
		if err := conn.Close(); err != nil || !self {
			return err
		}
	}
}

// If the port were not reserved, the server of another test could use it and reply to the proxy's clients.
func TestRefusingProxyKeepsItsPort(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("ports are kept on Linux only")
	}
	_, p, _ := through(t)
	p.Refuse(true)
	l, err := net.Listen("tcp", p.Addr())
	if err == nil {
		require.NoError(t, l.Close())
	}
	require.ErrorIs(t, err, syscall.EADDRINUSE)
	_, err = reserve(p.Addr())
	require.ErrorContains(t, err, "address already in use", "nor can another proxy")
	p.Refuse(false)
	_, err = dial(t, p.Addr()).Do("PING")
	require.NoError(t, err)
}

func TestConnectionBetweenRefuseAndResetIsRefused(t *testing.T) {
	t.Parallel()
	_, p, _ := through(t)
	here, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = here.Close() })
	client, err := net.Dial("tcp", here.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	accepted, err := here.Accept()
	require.NoError(t, err)

	p.mu.Lock()
	from := p.listener
	p.mu.Unlock()
	p.Refuse(true)
	p.Reset()
	p.accept(accepted.(*net.TCPConn), from) // as the accept loop would have done
	require.Zero(t, p.linkCount())
	require.NoError(t, client.SetReadDeadline(time.Now().Add(soon)))
	_, err = client.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)
}

// A process that is being forked inherits a copy of the listener.
func TestRefuseWorksWithInheritedListener(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("listeners are shut down on Linux only")
	}
	_, p, _ := through(t)
	p.mu.Lock()
	copied, err := p.listener.(*net.TCPListener).File()
	p.mu.Unlock()
	require.NoError(t, err)
	t.Cleanup(func() { _ = copied.Close() })
	p.Refuse(true)
	require.ErrorIs(t, dialOther(p.Addr()), syscall.ECONNREFUSED)
	p.Refuse(false)
	_, err = dial(t, p.Addr()).Do("PING")
	require.NoError(t, err)
}
