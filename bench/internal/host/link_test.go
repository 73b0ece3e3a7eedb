package host_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/bench/internal/host"
)

// echo answers each connection with what it gets.
func echo(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(c, c)
				_ = c.Close()
			}()
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestALinkAddsItsRoundTripAndKeepsTheOrder(t *testing.T) {
	t.Parallel()
	const trip = 2 * time.Millisecond
	l, err := host.StartLink(echo(t).Addr().String(), trip)
	require.NoError(t, err)
	defer l.Stop()
	c, err := net.Dial("tcp", l.Addr())
	require.NoError(t, err)
	got := make([]byte, 1)
	for i := range 20 {
		began := time.Now()
		_, err := c.Write([]byte{byte(i)})
		require.NoError(t, err)
		_, err = io.ReadFull(c, got)
		require.NoError(t, err)
		require.Equal(t, byte(i), got[0])
		require.GreaterOrEqual(t, time.Since(began), trip)
	}
	require.NoError(t, c.Close())
}

func TestALinkEndsWithItsConnections(t *testing.T) {
	t.Parallel()
	l, err := host.StartLink(echo(t).Addr().String(), time.Millisecond)
	require.NoError(t, err)
	c, err := net.Dial("tcp", l.Addr())
	require.NoError(t, err)
	_, err = c.Write([]byte("x"))
	require.NoError(t, err)
	_, err = io.ReadFull(c, make([]byte, 1))
	require.NoError(t, err)
	l.Stop()
	_, err = io.ReadFull(c, make([]byte, 1))
	require.Error(t, err)
	_, err = net.Dial("tcp", l.Addr())
	require.Error(t, err)
}
