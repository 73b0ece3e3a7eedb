package servers

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// soon is far more than a probe takes, and far less than one without a bound would.
const soon = 5 * time.Second

// socket makes a socket of the test's own.
func socket(t *testing.T) (l net.Listener, host string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "itest-") //nolint:usetesting // long paths do not fit a socket's address
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "docker.sock")
	l, err = net.Listen("unix", path)
	require.NoError(t, err)
	return l, "unix://" + path
}

// serving is a socket behind which serve has each connection.
func serving(t *testing.T, serve func(c net.Conn)) (host string) {
	t.Helper()
	l, host := socket(t)
	var wg sync.WaitGroup
	wg.Go(func() { // ends with the listener
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = c.Close() })
			wg.Go(func() { serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return host
}

// answering is a socket behind which HTTP is spoken.
func answering(t *testing.T, handler http.Handler) (host string) {
	t.Helper()
	l, host := socket(t)
	server := httptest.NewUnstartedServer(handler)
	_ = server.Listener.Close()
	server.Listener = l
	server.Start()
	t.Cleanup(server.Close)
	return host
}

// silent takes connections and says nothing.
func silent(t *testing.T) string {
	t.Helper()
	return serving(t, func(net.Conn) {})
}

// deserted is a socket's file that its owner has left behind.
func deserted(t *testing.T) string {
	t.Helper()
	l, host := socket(t)
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, l.Close())
	return host
}

// pong is what an engine answers to a sign of life.
func pong(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Api-Version", "1.51")
	_, _ = w.Write([]byte("OK"))
}

func TestTheProbeGivesUpInTimeAndSaysWhy(t *testing.T) {
	t.Parallel()
	dribbling := func(c net.Conn) {
		// An answer that comes before the question is an error of another kind.
		if _, err := c.Read(make([]byte, 1)); err != nil {
			return
		}
		for { // ends with the connection
			if _, err := c.Write([]byte("H")); err != nil {
				return
			}
			time.Sleep(20 * time.Millisecond) // for longer than the probe may wait
		}
	}
	for _, c := range []struct{ name, host, says string }{
		{"a socket without an answer", silent(t), "did not answer within 300ms"},
		{"a socket with an endless answer", serving(t, dribbling), "did not answer within 300ms"},
		{"a socket where nonsense is said", serving(t, func(c net.Conn) {
			_, _ = c.Write([]byte("220 mail.example.com ESMTP\r\n"))
			_ = c.Close()
		}), "is no Docker engine that can be used: "},
		{"a server of something else", answering(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("welcome"))
		})), "is no Docker engine that can be used: "},
		{"an engine that fails", answering(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "starting", http.StatusServiceUnavailable)
		})), "is no Docker engine that can be used: "},
		{"a socket that was left behind", deserted(t), "Is the docker daemon running?"},
		{"no socket", "unix:///nowhere/docker.sock", "there is no socket of a Docker engine: unix:///nowhere/docker.sock"},
		{"a port without a listener", "tcp://127.0.0.1:1", "is no Docker engine that can be used: "},
		{"a host that cannot be read", "nonsense", "nonsense is no Docker engine that can be used: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*soon)
			defer cancel()
			began := time.Now()
			_, err := probe(ctx, []string{c.host})
			assert.Less(t, time.Since(began), soon)
			require.ErrorContains(t, err, c.says)
			assert.ErrorContains(t, err, c.host)
		})
	}
}

func TestTheFirstEngineThatAnswersIsUsed(t *testing.T) {
	t.Parallel()
	first, second := answering(t, http.HandlerFunc(pong)), answering(t, http.HandlerFunc(pong))
	e, err := probe(t.Context(), []string{"unix:///nowhere/docker.sock", silent(t), first, second})
	require.NoError(t, err)
	assert.Equal(t, first, e.host)
}

func TestSocketsAreLookedForInTheUsualPlaces(t *testing.T) {
	t.Setenv("DOCKER_HOST", "tcp://build.example.com:2376")
	assert.Equal(t, []string{"tcp://build.example.com:2376"}, sockets(), "one that is named, and no other")
	t.Setenv("DOCKER_HOST", "")
	t.Setenv("HOME", "/home/ada")
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1815")
	assert.Equal(t, []string{
		"unix:///var/run/docker.sock",
		"unix:///run/user/1815/docker.sock",
		"unix:///home/ada/.docker/run/docker.sock",
		"unix:///home/ada/.docker/desktop/docker.sock",
	}, sockets())
	t.Setenv("XDG_RUNTIME_DIR", "")
	assert.Contains(t, sockets()[1], "unix:///run/user/")
}
