package main

import (
	"bufio"
	"context"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

const (
	asCandidate = "REDLATCH_EXAMPLE_LEADER"
	lockKey     = "leader-example"
)

func TestMain(m *testing.M) {
	if url := os.Getenv(asCandidate); url != "" {
		os.Args = []string{"leader", url}
		main()
		return
	}
	redistest.Main(m)
}

func TestSIGTERMReleasesLeadership(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), asCandidate+"="+s.URL())
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	require.True(t, lines.Scan())
	require.Equal(t, "leading", lines.Text())
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.False(t, lines.Scan(), "the leadership ends without a loss")
	require.NoError(t, cmd.Wait())
	require.EqualValues(t, 0, s.Do(t, "EXISTS", lockKey))
}

// candidate runs the program's candidate in a bubble.
type candidate struct {
	said chan string
	stop context.CancelFunc
	over chan error

	mu    sync.Mutex // guards the fields below
	dead  bool
	conns []net.Conn
}

func (c *candidate) Write(line []byte) (int, error) {
	c.said <- string(line)
	return len(line), nil
}

// says waits for the next line, which must have the given prefix.
func (c *candidate) says(t *testing.T, begin string) {
	t.Helper()
	select {
	case line := <-c.said:
		require.Contains(t, line, begin)
	case <-time.After(time.Minute):
		require.FailNow(t, "no line", "want %s", begin)
	}
}

// newCandidate starts a candidate and waits until it is leading or waiting to lead.
func newCandidate(t *testing.T, srv *redistest.MiniServer) *candidate {
	t.Helper()
	c := &candidate{said: make(chan string, 10), over: make(chan error, 1)}
	client, err := redlatch.New(func(ctx context.Context) (redis.Conn, error) { return c.dial(ctx, srv) }, redlatch.WithWatchdogTimeout(lease))
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	c.stop = stop
	go func() { c.over <- stand(ctx, client, c) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, client.Close())
	})
	synctest.Wait()
	return c
}

func (c *candidate) dial(ctx context.Context, srv *redistest.MiniServer) (redis.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return nil, net.ErrClosed
	}
	conn, err := srv.DialNet(ctx, "", "")
	if err != nil {
		return nil, err
	}
	c.conns = append(c.conns, conn)
	return respconn.NewConn(conn, time.Second), nil
}

// die closes the candidate's connections permanently, as if its process had exited.
func (c *candidate) die() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = true
	for _, conn := range c.conns {
		_ = conn.Close()
	}
}

// pair returns a leader and a waiting candidate.
func pair(t *testing.T) (s *redistest.MiniServer, first, second *candidate) {
	t.Helper()
	s = redistest.Mini(t, embedded.WithInProcess())
	first = newCandidate(t, s)
	first.says(t, "leading")
	second = newCandidate(t, s)
	require.Empty(t, second.said)
	return s, first, second
}

func TestStoppedLeaderIsReplacedImmediately(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, first, second := pair(t)
		began := time.Now()
		first.stop()
		second.says(t, "leading")
		require.Zero(t, time.Since(began))
		require.NoError(t, <-first.over)
	})
}

func TestDeadLeaderIsReplacedAfterLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, first, second := pair(t)
		began := time.Now()
		first.die()
		second.says(t, "leading")
		require.LessOrEqual(t, time.Since(began), lease+time.Second)
		first.says(t, "stepped down")
	})
}

func TestLeaderStepsDownOnLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, first, second := pair(t)
		s.Do(t, "DEL", lockKey)
		s.Do(t, "PUBLISH", codec.LockChannel(lockKey), "0")
		second.says(t, "leading")
		first.says(t, "stepped down")
		second.stop()
		first.says(t, "leading")
	})
}
