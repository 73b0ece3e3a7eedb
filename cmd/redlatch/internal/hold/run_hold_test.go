//go:build unix

package hold

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

func ttl(t *testing.T, s redistest.Target, name string) time.Duration {
	t.Helper()
	ms, ok := s.Do(t, "PTTL", name).(int64)
	require.True(t, ok)
	return max(0, time.Duration(ms)*time.Millisecond)
}

func TestTheCommandFindsItsLockAndOwnerInItsEnvironment(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	env := []string{"REDIS_URL=" + s.URL(), "REDLATCH_LOCK=outer", "REDLATCH_OWNER=outer"}
	p := program.StartWith(t, env, "run", name, "--", "sh", "-c", `echo "$REDLATCH_LOCK"; echo "$REDLATCH_OWNER"; read x`)
	require.Equal(t, name, p.Line())
	owner := p.Line()
	_, err := redlatch.ParseOwner(owner)
	require.NoError(t, err)
	require.EqualValues(t, 1, s.Do(t, "HEXISTS", name, owner))
	require.NoError(t, p.Stdin.Close())
	p.Rest()
}

func TestMaxHoldEndsTheCommandAndFreesTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for script, left := range map[string]string{program.EndsOnSIGTERM: "term\n", program.IgnoresSIGTERM: ""} {
		t.Run(left, func(t *testing.T) {
			t.Parallel()
			name := redistest.Key(t)
			p := program.Start(t, s.URL(), "run", "--max-hold", "4s", name, "--", "sh", "-c", script)
			require.Equal(t, "up", p.Line())
			require.Equal(t, left, p.Rest())
			require.Equal(t, 125, p.Code())
			require.Contains(t, p.Stderr.String(), "was held for 4s, which is the most by --max-hold")
			require.EqualValues(t, 0, s.Do(t, "EXISTS", name))
		})
	}
	got := program.Finish(t, s.URL(), "run", "--max-hold", "1m", redistest.Key(t), "--", "sh", "-c", "exit 3")
	require.Equal(t, program.Outcome{Code: 3, Stdout: "", Stderr: ""}, got)
}

func TestAtLeastLeavesTheLockForWhatRemains(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, fair := range []string{"--fair=false", "--fair", "--fenced"} {
		name := redistest.Key(t)
		began := time.Now()
		got := program.Finish(t, s.URL(), "run", fair, "--at-least", "1h", name, "--", "sh", "-c", "exit 5")
		require.Equal(t, program.Outcome{Code: 5, Stdout: "", Stderr: ""}, got)
		left := ttl(t, s, name)
		require.Less(t, left, time.Hour)
		require.GreaterOrEqual(t, left+time.Since(began), time.Hour)
		got = program.Finish(t, s.URL(), "run", fair, "--try", name, "--", "echo", "never")
		require.Equal(t, 124, got.Code)
		s.Do(t, "DEL", name)
	}
}

func TestAtLeastWithinALeaseIsWaitedForAndTheNextOneIsWoken(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	began := time.Now()
	p := program.Start(t, s.URL(), "run", "--at-least", "4s", name, "--", "sh", "-c", "echo done")
	require.Equal(t, "done", p.Line())
	next := program.Start(t, s.URL(), "run", name, "--", "echo", "in")
	require.Equal(t, "in", next.Line())
	require.GreaterOrEqual(t, time.Since(began), 4*time.Second)
	require.Less(t, time.Since(began), 20*time.Second, "it was left to its lease")
	require.Equal(t, 0, p.Code())
	require.Empty(t, p.Stderr.String())
}

func TestMaxHoldAsLongAsAtLeastFreesTheLock(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	far := redistest.NewProxy(t, s.Addr()) // the hold counts from the request, --at-least from the reply
	far.Latency(redistest.ToClient, 50*time.Millisecond)
	name := redistest.Key(t)
	began := time.Now()
	got := program.Finish(t, far.URL(), "run", "--max-hold", "4s", "--at-least", "4s", name, "--", "true")
	require.Equal(t, program.Outcome{}, got)
	require.GreaterOrEqual(t, time.Since(began), 4*time.Second)
	require.False(t, program.Exists(t, s, name), "it is left to its lease of 30s")
}

func TestSignalEndsTheWaitOfAtLeastAndTheLockStays(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	asked := time.Now()
	p := program.Start(t, s.URL(), "run", "--watchdog=6s", "--at-least=7s", name, "--", "sh", "-c", "trap '' TERM; echo began; sleep 1.5; echo done; exit 7")
	require.Equal(t, "began", p.Line())
	began := time.Now()
	require.Equal(t, "done", p.Line())
	over := keepSending(p, syscall.SIGTERM)
	require.Empty(t, p.RestWithin(2*program.Soon))
	require.Equal(t, 7, p.Code())
	over()
	require.Less(t, time.Since(began), 6*time.Second, "it waited on")
	require.Empty(t, p.Stderr.String())
	left := ttl(t, s, name)
	require.Greater(t, time.Since(asked)+left, 7*time.Second)
}

func TestAtLeastThatCannotBeKeptCostsAWarningAndNotTheExitCode(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := program.Start(t, s.URL(), "run", "--at-least", "1h", redistest.Key(t), "--", "sh", "-c", "echo up; read x; exit 7")
	require.Equal(t, "up", p.Line())
	s.Kill()
	require.NoError(t, p.Stdin.Close())
	require.Empty(t, p.Rest())
	require.Equal(t, 7, p.Code())
	program.OneLine(t, p.Stderr.String())
	require.Contains(t, p.Stderr.String(), "it may be free before --at-least is over: ")
}

// keepSending repeats sig until the returned function is called: the command may receive the first
// ones.
func keepSending(p *program.Process, sig os.Signal) func() {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for tick := time.NewTicker(20 * program.PollEvery); ; {
			select {
			case <-tick.C:
				_ = p.Cmd.Process.Signal(sig) // it may have ended
			case <-stop:
				tick.Stop()
				return
			}
		}
	}()
	return func() {
		close(stop)
		<-stopped
	}
}

func TestOnLostChoosesWhatHappensToTheCommand(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	for _, c := range []struct {
		policy, left, says string
		code               int
	}{
		{"term", "term\n", "was lost while the command ran: it was released by another client, or its key was deleted", 125},
		{"kill", "", "was lost while the command ran: it was released by another client, or its key was deleted", 125},
		{"ignore", "went on\n", "which went on without it: it was released by another client, or its key was deleted", 4},
	} {
		t.Run(c.policy, func(t *testing.T) {
			t.Parallel()
			name := redistest.Key(t)
			p := program.Start(t, s.URL(), "run", "--watchdog", "10s", "--on-lost", c.policy, name, "--", "sh", "-c",
				`trap 'echo term; exit 0' TERM; echo up; read x; echo went on; exit 4`)
			require.Equal(t, "up", p.Line())
			s.Do(t, "DEL", name)
			if c.policy == "ignore" {
				s.Do(t, "HSET", name, program.SomeOwner, 1) // the renewal that detects the loss leaves it alone
				s.Do(t, "PEXPIRE", name, 60_000)
				require.Eventually(t, func() bool { return ttl(t, s, name) < 55*time.Second }, program.Soon, program.PollEvery)
				require.NoError(t, p.Stdin.Close())
			}
			require.Equal(t, c.left, p.Rest())
			require.Equal(t, c.code, p.Code())
			program.OneLine(t, p.Stderr.String())
			require.Contains(t, p.Stderr.String(), c.says)
		})
	}
}

func TestEverySignalIsForwarded(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	script, signals := `trap 'echo TERM; exit 6' TERM; `, map[string]syscall.Signal{
		"INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	}
	for name := range signals {
		script += strings.ReplaceAll(`trap 'echo NAME' NAME; `, "NAME", name)
	}
	lock := redistest.Key(t)
	p := program.Start(t, s.URL(), "run", lock, "--", "sh", "-c", script+`echo up; while :; do sleep 0.05; done`)
	require.Equal(t, "up", p.Line())
	for range 2 {
		for name, sig := range signals {
			require.NoError(t, p.Cmd.Process.Signal(sig))
			require.Equal(t, name, p.Line())
		}
	}
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTERM))
	require.Equal(t, "TERM\n", p.Rest())
	require.Equal(t, 6, p.Code())
	require.EqualValues(t, 0, s.Do(t, "EXISTS", lock))
}

// After a suspension, a hold may end by --max-hold long before the timer of --at-least.
func TestASignalEndsTheRestOfAtLeastAlsoAfterMaxHold(t *testing.T) {
	t.Parallel()
	client, err := redlatch.Open(t.Context(), redistest.Start(t).URL())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	lock := rlock.New(client, "job")
	hold, err := lock.Lock(t.Context(), rlock.WithMaxHold(2*time.Second))
	require.NoError(t, err)
	h := &held{lockFlags: &lockFlags{}, hold: hold, lock: lock, lost: hold.Context(t.Context()), since: time.Now(), client: client}
	signals, came := make(chan os.Signal), make(chan error, 1)
	go func() { came <- h.await(t.Context(), time.Hour, signals) }()
	<-hold.Context(t.Context()).Done()
	time.Sleep(100 * time.Millisecond) // until the end of the hold was handled
	select {
	case signals <- os.Interrupt:
		require.ErrorIs(t, <-came, redlatch.ErrMaxHold)
	case <-time.After(10 * time.Second):
		require.Fail(t, "signals are not heeded")
	}
}

func TestLossOfNamesTheRefusalOfRenewals(t *testing.T) {
	t.Parallel()
	refused := &transport.ServerError{Text: "NOREPLICAS Not enough good replicas to write."}
	for want, over := range map[string]error{
		"the lease was not renewed in time": redlatch.LossNotRenewed,
		"the lease was not renewed in time: the server refused to renew it: NOREPLICAS Not enough good replicas to write": fmt.Errorf("%w: %w", redlatch.LossNotRenewed, refused),
		string(redlatch.LossTaken): fmt.Errorf("%w: %w", redlatch.LossTaken, refused),
	} {
		require.Equal(t, want, (&lockFlags{}).lossOf(over, over))
	}
}

func TestGraceEndsWithinTheMargin(t *testing.T) {
	t.Parallel()
	for _, lease := range []time.Duration{time.Millisecond, time.Second, 3 * time.Second, 30 * time.Second, time.Hour} {
		margin := (&lockFlags{lease: lease}).margin()
		require.LessOrEqual(t, margin, lease/10)
		require.LessOrEqual(t, margin, time.Second)
		require.Less(t, grace(margin), margin)
		require.Greater(t, grace(margin), margin/2)
	}
}
