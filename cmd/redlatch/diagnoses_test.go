//go:build unix

package main

import (
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

func TestPausedWritesAreNotCalledAnOutage(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	srv.Do(t, "CLIENT", "PAUSE", time.Hour.Milliseconds(), "WRITE")
	for _, args := range [][]string{{"run", "--wait", "1s", "job", "--", "true"}, {"status", "job"}} {
		got := program.Finish(t, srv.URL(), args...)
		require.NotZero(t, got.Code, args)
		require.NotContains(t, got.Stderr, "redlatch serve", args)
		require.NotContains(t, got.Stderr, "cannot reach", args)
	}
}

// What the server says as it accepts a connection and closes it, as at its maxclients.
func TestRefusalAtAcceptIsReported(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("-ERR max number of clients reached\r\n")) // the client may have gone
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		require.NoError(t, l.Close())
		<-over
	})
	for _, args := range [][]string{{"doctor"}, {"list"}} {
		got := program.Finish(t, "redis://"+l.Addr().String(), args...)
		require.NotZero(t, got.Code, args)
		require.Contains(t, got.Stderr, "max number of clients reached. It has no room for another connection", args)
	}
}

// TestDiagnosesOfACluster is one story: clusters are dear.
func TestDiagnosesOfACluster(t *testing.T) {
	testlevel.All(t, "a cluster")
	t.Parallel()
	s := newClusterLocks(t)
	name := s.names[0]
	from, to := s.c.Owner(t, name), s.c.Owner(t, s.names[1])
	s.c.MoveSlot(t, transport.HashSlot(name), to, func() {
		text := s.ok(t, "status", name)
		assert.Contains(t, text, s.id, "the holder is known")
		assert.Contains(t, text, "queue  not shown: TRYAGAIN")
		assert.Contains(t, text, "is being moved")
		assert.NotContains(t, text, "may not")
		got := program.Finish(t, s.url, "run", "--fair", "--wait", "3s", name, "--", "true")
		assert.Equal(t, 125, got.Code)
		assert.Contains(t, got.Stderr, "refuses: TRYAGAIN")
		assert.Contains(t, got.Stderr, "is being moved to another node")
		got = program.Finish(t, s.url, "unlock", "--force", "--even-if-alive", "--yes", name)
		assert.Equal(t, 1, got.Code)
		assert.Contains(t, got.Stdout+got.Stderr, "is being moved to another node")
		assert.NotContains(t, got.Stdout, "may not")
	})
	s.c.AwaitOwner(t, name, from)

	down := s.c.Owner(t, s.names[2])
	s.c.Each(func(node *redistest.Server) { node.Do(t, "CONFIG", "SET", "cluster-require-full-coverage", "no") })
	down.Kill()
	for _, args := range [][]string{{"status", s.names[2]}, {"run", "--wait", "1s", s.names[2], "--", "true"}} {
		got := program.Finish(t, s.url, args...)
		require.NotZero(t, got.Code)
		require.Contains(t, got.Stderr, "cannot reach Redis at "+down.Addr()+", a master of redis-cluster://", args)
	}
	got := program.Finish(t, s.url, "list")
	require.Equal(t, 1, got.Code)
	require.Contains(t, got.Stdout, s.names[1])
	require.Contains(t, got.Stderr, "the list is not complete: cannot reach Redis at "+down.Addr())
	got = program.Finish(t, s.url, "doctor")
	require.Equal(t, 2, got.Code)
	require.Contains(t, got.Stdout, "one of 3 masters")
	require.Contains(t, got.Stdout, down.Addr())
}
