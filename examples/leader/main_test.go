package main

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

const (
	asCandidate = "REDLATCH_EXAMPLE_LEADER"
	lockKey     = "leader-example"
	soon        = 20 * time.Second
)

func TestMain(m *testing.M) {
	if url := os.Getenv(asCandidate); url != "" {
		os.Args = []string{"leader", url}
		main()
		return
	}
	redistest.Main(m)
}

// candidate is a process that leads or stands by.
type candidate struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

// stand starts a candidate. It is killed with the test, if it is still there.
func stand(t *testing.T, s *redistest.Server) *candidate {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*soon)
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), asCandidate+"="+s.URL())
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	return &candidate{cmd, bufio.NewScanner(out)}
}

// says waits for the next line and holds that it begins so.
func (c *candidate) says(t *testing.T, begin string) {
	t.Helper()
	require.True(t, c.lines.Scan(), "it ended without a word")
	require.Contains(t, c.lines.Text(), begin)
}

// pair starts two candidates of which the first leads and the second listens.
func pair(t *testing.T) (s *redistest.Server, first, second *candidate) {
	t.Helper()
	s = redistest.Start(t)
	first = stand(t, s)
	first.says(t, "leading")
	second = stand(t, s)
	require.Eventually(t, func() bool {
		for _, c := range s.Channels(t) {
			if c == codec.LockChannel(lockKey) {
				return true
			}
		}
		return false
	}, soon, 5*time.Millisecond, "the second stands by")
	return s, first, second
}

func TestLeaderThatIsAskedToStopMakesWayAtOnce(t *testing.T) {
	t.Parallel()
	_, first, second := pair(t)
	began := time.Now()
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGTERM))
	second.says(t, "leading")
	require.Less(t, time.Since(began), lease/2, "no candidate waited for a lease")
	require.NoError(t, first.cmd.Wait())
}

func TestLeaderThatDiesIsFollowedWhenItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	_, first, second := pair(t)
	began := time.Now()
	require.NoError(t, first.cmd.Process.Kill())
	second.says(t, "leading")
	require.Less(t, time.Since(began), 2*lease)
}

func TestLeaderThatLosesTheLockStepsDown(t *testing.T) {
	t.Parallel()
	s, first, second := pair(t)
	s.Do(t, "DEL", lockKey)
	s.Do(t, "PUBLISH", codec.LockChannel(lockKey), "0")
	second.says(t, "leading")
	first.says(t, "stepped down")
	require.NoError(t, second.cmd.Process.Signal(syscall.SIGTERM))
	first.says(t, "leading")
}
