//go:build unix

package hold

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

func TestFixedLeaseEndsTheCommandBeforeTheServerEndsTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	redistest.UnlessTheMachineStalls(t, func() error {
		name := redistest.Key(t)
		pipe, death := awaitDeaths(t)
		p := program.Start(t, s.URL(), "run", "--lease", "5s", name, "--", "sh", "-c", "exec 3>"+pipe+"; "+program.IgnoresSIGTERM)
		require.Equal(t, "up", p.Line())
		over := keysEnd(t, s, false, name)[0]
		err := diedInTime(t, <-death, over)
		require.Equal(t, 125, p.Code())
		require.Contains(t, p.Stderr.String(), "its lease of 5s was over")
		return err
	})
}

func TestCommandThatEndsByItselfKeepsItsCodeWhenTheServerIsGone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := program.Start(t, s.URL(), "run", redistest.Key(t), "--", "sh", "-c", "echo up; read x; exit 7")
	require.Equal(t, "up", p.Line())
	s.Kill()
	require.NoError(t, p.Stdin.Close())
	require.Empty(t, p.Rest())
	require.Equal(t, 7, p.Code())
	program.OneLine(t, p.Stderr.String())
	require.Contains(t, p.Stderr.String(), "left to its lease")
}

// processTree starts descendants that keep standard output open.
const processTree = `trap '' HUP; sh -c 'sleep 300 & sleep 300; true' & echo up; sleep 300; true`

func TestLossEndsTheChildrenOfTheCommandToo(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	p := program.Start(t, s.URL(), "run", "--watchdog", "3s", name, "--", "sh", "-c", `trap '' TERM; `+processTree)
	require.Equal(t, "up", p.Line())
	s.Do(t, "DEL", name)
	require.Empty(t, p.Rest())
	require.Equal(t, 125, p.Code())
}

// suspend sends SIGTSTP and returns when redlatch has stopped.
func suspend(t *testing.T, p *program.Process) {
	t.Helper()
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTSTP))
	var status syscall.WaitStatus
	_, err := syscall.Wait4(p.Cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
	require.NoError(t, err)
	require.True(t, status.Stopped())
}

func TestSuspendedRunStopsTheCommandAndKillsItIfTheLockIsGoneAfterwards(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	beat := filepath.Join(t.TempDir(), "beat")
	p := program.Start(t, s.URL(), "run", "--watchdog", "3s", name, "--", "sh", "-c",
		"trap '' TERM; echo x >"+beat+"; echo up; while :; do echo x >>"+beat+"; sleep 0.02; done")
	require.Equal(t, "up", p.Line())
	suspend(t, p)
	before, err := os.ReadFile(beat)
	require.NoError(t, err)
	require.Eventually(t, func() bool { return s.Do(t, "EXISTS", name) == int64(0) }, program.Soon, program.PollEvery,
		"it goes on renewing")
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGCONT))
	require.Empty(t, p.Rest())
	require.Equal(t, 125, p.Code())
	require.Contains(t, p.Stderr.String(), "was lost")
	after, err := os.ReadFile(beat)
	require.NoError(t, err)
	require.Len(t, after, len(before), "the command went on without the lock")
}

func TestRunThatWasSuspendedBrieflyGoesOn(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	p := program.Start(t, s.URL(), "run", redistest.Key(t), "--", "sh", "-c", "echo up; while read x; do echo $x; done")
	require.Equal(t, "up", p.Line())
	suspend(t, p)
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGCONT))
	_, err := p.Stdin.Write([]byte("still here\n"))
	require.NoError(t, err)
	require.Equal(t, "still here", p.Line())
	require.NoError(t, p.Stdin.Close())
	require.Equal(t, 0, p.Code())
}

// awaitDeaths returns the path of a pipe, and a channel that receives when all processes with the
// pipe open have died.
func awaitDeaths(t *testing.T) (string, <-chan time.Time) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(path, 0o600))
	death := make(chan time.Time, 1)
	go func() {
		_, _ = os.ReadFile(path) // until all processes have closed it
		death <- time.Now()
	}()
	return path, death
}

// keysEnd returns when the keys expire. With pause the server serves no clients from then on.
func keysEnd(t *testing.T, s *redistest.Server, pause bool, names ...string) []time.Time {
	t.Helper()
	c := s.Dial(t)
	require.NoError(t, c.Send("MULTI"))
	require.NoError(t, c.Send("TIME"))
	for _, name := range names {
		require.NoError(t, c.Send("PTTL", name))
	}
	if pause {
		require.NoError(t, c.Send("CLIENT", "PAUSE", time.Hour.Milliseconds()))
	}
	replies, err := redis.Values(c.Do("EXEC"))
	require.NoError(t, err)
	now, err := redis.Int64s(replies[0], nil)
	require.NoError(t, err)
	ends := make([]time.Time, len(names))
	for i := range names {
		ms, ok := replies[1+i].(int64)
		require.True(t, ok)
		require.Positive(t, ms)
		ends[i] = time.Unix(now[0], now[1]*1000).Add(time.Duration(ms) * time.Millisecond)
	}
	return ends
}

// diedInTime returns an error for a command that outlived its key. One that was killed seconds too
// early fails the test.
func diedInTime(t *testing.T, died, over time.Time) error {
	t.Helper()
	require.Greater(t, died, over.Add(-4*time.Second), "given up without need")
	if died.Before(over) {
		return nil
	}
	return fmt.Errorf("the command outlived its lock by %v", died.Sub(over))
}

// trialsEnv overrides the number of trials.
const trialsEnv = "REDLATCH_TRIALS"

const batch = 10

// batches calls body for all trials, at most ten at a time.
func batches(t *testing.T, few int, body func(t *testing.T, trials int)) {
	t.Helper()
	trials := few
	if text := os.Getenv(trialsEnv); text != "" {
		var err error
		trials, err = strconv.Atoi(text)
		require.NoError(t, err, trialsEnv)
	}
	for i := 0; i < trials; i += batch {
		body(t, min(batch, trials-i))
	}
}

// quiet ignores SIGTERM and uses no processor time.
const quiet = `trap '' TERM; echo up; exec cat`

type frozen struct {
	p     *program.Process
	death <-chan time.Time
}

func TestServerThatFreezesCostsTheCommandItsLifeBeforeTheKeyExpires(t *testing.T) {
	testlevel.All(t, "real leases, 13 s")
	t.Parallel()
	batches(t, 2, func(t *testing.T, trials int) {
		t.Helper()
		redistest.UnlessTheMachineStalls(t, func() error { return freezeServer(t, trials) })
	})
}

// freezeServer pauses the server of running commands and returns an error if one outlived its key.
func freezeServer(t *testing.T, trials int) (late error) {
	t.Helper()
	s := redistest.Start(t)
	all, names := make([]frozen, trials), make([]string, trials)
	for i := range all {
		names[i] = redistest.Key(t)
		// The longest margin: test machines may be slow.
		pipe, death := awaitDeaths(t)
		p := program.Start(t, s.URL(), "run", "--watchdog", "10s", names[i], "--", "sh", "-c", "exec 3>"+pipe+"; "+quiet)
		all[i] = frozen{p: p, death: death}
	}
	for _, f := range all {
		require.Equal(t, "up", f.p.Line())
	}
	over := keysEnd(t, s, true, names...)
	s.Pause()
	defer s.Resume()
	least := time.Hour
	for i, f := range all {
		died := <-f.death
		late = errors.Join(late, diedInTime(t, died, over[i]))
		require.Equal(t, 125, f.p.Code())
		least = min(least, over[i].Sub(died))
	}
	if late == nil {
		t.Logf("%d commands died before their keys expired, the last one %v before", trials, least)
	}
	return late
}

func TestKillingRedlatchKillsTheCommandAndItsChildren(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	batches(t, 5, func(t *testing.T, trials int) {
		t.Helper()
		all := make([]*program.Process, trials)
		for i := range all {
			all[i] = program.Start(t, s.URL(), "run", redistest.Key(t), "--", "sh", "-c", processTree)
		}
		for _, p := range all {
			require.Equal(t, "up", p.Line())
			require.NoError(t, p.Cmd.Process.Kill())
		}
		for _, p := range all {
			require.Empty(t, p.Rest()) // returns when all are dead
			require.Equal(t, -1, p.Code())
		}
	})
}
