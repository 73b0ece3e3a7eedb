package host_test

import (
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/bench/internal/host"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newLauncher(t *testing.T) *host.Launcher {
	t.Helper()
	l := host.NewLauncher()
	t.Cleanup(l.Close)
	return l
}

func startServer(t *testing.T) *host.Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a server, and -short asks for tests without")
	}
	s, err := host.StartServer(newLauncher(t), host.Apart.Server())
	require.NoError(t, err)
	t.Cleanup(s.Stop)
	return s
}

func TestRequestsAreCountedWithoutWhatScriptsCall(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	_, err := s.Do("EVAL", "return 1", 0)
	require.NoError(t, err)
	before, err := s.Info()
	require.NoError(t, err)
	assert.NotEmpty(t, before.Version)
	for range 3 {
		_, err = s.Do("EVAL", "for i = 1, 50 do redis.call('SET', KEYS[1], i) end", 1, "k")
		require.NoError(t, err)
	}
	after, err := s.Info()
	require.NoError(t, err)
	w := after.Since(before, []string{"eval", "evalsha"})
	assert.InDelta(t, 3, w.Requests, 0)
	assert.Positive(t, w.Busy)
	assert.Positive(t, w.Lasted)
	assert.GreaterOrEqual(t, w.CPU, time.Duration(0))
	assert.InDelta(t, 150, after.Since(before, []string{"set"}).Requests, 0)
}

func TestClearedServerKnowsNothing(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	_, err := s.Do("SET", "k", "v")
	require.NoError(t, err)
	sha, err := s.Do("SCRIPT", "LOAD", "return 1")
	require.NoError(t, err)
	require.NoError(t, s.Clear())
	size, err := s.Do("DBSIZE")
	require.NoError(t, err)
	assert.Equal(t, int64(0), size)
	_, err = s.Do("EVALSHA", sha, 0)
	require.ErrorContains(t, err, "NOSCRIPT")
}

func TestProcessesRunWhereTheyAreAskedTo(t *testing.T) {
	t.Parallel()
	if !host.Apart.Possible() {
		t.Skip("this machine has one processor, or no way to choose")
	}
	l := newLauncher(t)
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

func TestMissingServerIsAnError(t *testing.T) {
	t.Setenv("REDLATCH_SERVER", "no-such-server")
	_, err := host.StartServer(newLauncher(t), nil)
	require.ErrorContains(t, err, "no-such-server")
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
