package host_test

import (
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/bench/internal/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRequestCountExcludesScriptCalls(t *testing.T) {
	t.Parallel()
	s := host.StartServer(t, host.Apart)
	c, err := redis.Dial("tcp", s.Addr())
	require.NoError(t, err)
	defer func() { assert.NoError(t, c.Close()) }()
	sha, err := c.Do("SCRIPT", "LOAD", "for i = 1, 50 do redis.call('SET', KEYS[1], i) end")
	require.NoError(t, err)
	_, err = c.Do("EVALSHA", sha, 1, "k")
	require.NoError(t, err)
	before := s.Info(t)
	for range 3 {
		_, err = c.Do("EVALSHA", sha, 1, "k")
		require.NoError(t, err)
	}
	after := s.Info(t)
	w := after.Since(before, []string{"eval", "evalsha"})
	assert.InDelta(t, 3, w.Requests, 0)
	assert.Positive(t, w.Busy)
	assert.Positive(t, w.Lasted)
	assert.GreaterOrEqual(t, w.CPU, time.Duration(0))
	assert.InDelta(t, 150, after.Since(before, []string{"set"}).Requests, 0)
	s.Clear(t)
	_, err = c.Do("EVALSHA", sha, 1, "k")
	require.ErrorContains(t, err, "NOSCRIPT", "a cleared server knows no scripts")
	keys, err := redis.Int(c.Do("DBSIZE"))
	require.NoError(t, err)
	assert.Zero(t, keys)
}

func TestProcessesRunOnGivenCPUs(t *testing.T) {
	t.Parallel()
	if !host.Apart.Possible() {
		t.Skip("this machine has one processor, or no way to choose")
	}
	l := host.NewLauncher()
	defer l.Close()
	server, clients := affinity(t, l, host.Apart.Server()), affinity(t, l, host.Apart.Clients())
	assert.NotEqual(t, server, clients)
	assert.NotContains(t, server, ",", "the server shares its processor")
	// The launcher's own thread is unchanged.
	anywhere := affinity(t, l, host.Free.Server())
	assert.NotEqual(t, server, anywhere)
	assert.NotEqual(t, clients, anywhere)
}

func affinity(t *testing.T, l *host.Launcher, cpus []int) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "grep", "Cpus_allowed_list", "/proc/self/status")
	var out strings.Builder
	cmd.Stdout = &out
	require.NoError(t, l.Start(cmd, cpus))
	require.NoError(t, cmd.Wait())
	_, list, found := strings.Cut(out.String(), ":")
	require.True(t, found, out.String())
	return strings.TrimSpace(list)
}

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

func TestLinkAddsDelayAndKeepsOrder(t *testing.T) {
	t.Parallel()
	const trip = 2 * time.Millisecond
	l, err := host.StartLink(echo(t).Addr().String(), trip)
	require.NoError(t, err)
	defer l.Stop()
	c, err := net.Dial("tcp", l.Addr())
	require.NoError(t, err)
	got := make([]byte, 1)
	for i := range 20 {
		due := time.Now().Add(trip)
		_, err := c.Write([]byte{byte(i)})
		require.NoError(t, err)
		_, err = io.ReadFull(c, got)
		require.NoError(t, err)
		require.Equal(t, byte(i), got[0])
		require.False(t, time.Now().Before(due), "it came too early")
	}
	require.NoError(t, c.Close())
}

func TestLinkClosesConnections(t *testing.T) {
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
