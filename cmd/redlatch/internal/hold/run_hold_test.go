//go:build unix

package hold

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

func TestCommandEnvironmentHasLockAndOwner(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	env := []string{"REDIS_URL=" + s.URL(), "REDLATCH_LOCK=outer", "REDLATCH_OWNER=outer"}
	p := program.StartWith(t, env, "run", name, "--", "sh", "-c", `echo "$REDLATCH_LOCK"; echo "$REDLATCH_OWNER"; read x`)
	require.Equal(t, name, p.Line())
	owner := p.Line()
	_, err := codec.ParseOwner(owner)
	require.NoError(t, err)
	require.EqualValues(t, 1, s.Do(t, "HEXISTS", name, owner))
	require.NoError(t, p.Stdin.Close())
	p.Rest()
}

// The innermost run waits inside the holds of the other two, which can be released only after it.
// TestOuterHoldsReachEngine checks the first half.
func TestNestedRunAnnouncesItsWait(t *testing.T) {
	testlevel.All(t, "a wait is announced after five seconds")
	t.Parallel()
	s := redistest.Shared(t)
	outer, inner, contended := redistest.Key(t), redistest.Key(t), heldHere(t, s)
	exe, err := os.Executable()
	require.NoError(t, err)
	p := program.StartWith(t, []string{"REDIS_URL=" + s.URL(), engine.LabelEnv + "=test"}, "run", outer, "--", exe, "run", inner, "--",
		"sh", "-c", `echo "$REDLATCH_OWNER"; echo "$REDLATCH_OUTER"; exec "$0" run `+contended+` -- true`, exe)
	var owners []string
	for _, lock := range []string{inner, outer} {
		owner := p.Line()
		require.EqualValues(t, 1, s.Do(t, "HEXISTS", lock, owner))
		owners = append(owners, owner)
	}
	for _, owner := range owners {
		require.Eventually(t, func() bool {
			text, _ := redis.String(s.Do(t, "GET", engine.NestedKey(owner)), nil)
			return strings.HasSuffix(text, " plain "+contended)
		}, 20*time.Second, 50*time.Millisecond)
	}
	_ = p.Cmd.Process.Kill()
}

func TestOuterHoldsReachEngine(t *testing.T) {
	t.Setenv(envOwner, "inner:1")
	t.Setenv(envOuter, "outer:1 outermost:1")
	o := &lockFlags{Globals: &cli.Globals{Redis: redistest.Mini(t).URL()}, watchdog: time.Minute}
	h, err := o.open(t.Context(), "job")
	require.NoError(t, err)
	require.Equal(t, []string{"inner:1", "outer:1", "outermost:1"}, engine.EngineOf(h.client).Outer)
	require.NoError(t, h.hold.Unlock())
	h.disconnect()
}

// TestOnLostExecIsBoundedAndRunsOnlyOnLoss also runs a command that --max-hold ends.
func TestMaxHoldEndsCommandAndReleasesLock(t *testing.T) {
	testlevel.All(t, "it holds a lock for ten seconds")
	t.Parallel()
	s := redistest.Shared(t)
	for script, left := range map[string]string{program.EndsOnSIGTERM: "term\n", program.IgnoresSIGTERM: ""} {
		t.Run(left, func(t *testing.T) {
			t.Parallel()
			name := redistest.Key(t)
			p := program.Start(t, s.URL(), "run", "--max-hold", "10s", name, "--", "sh", "-c", script)
			require.Equal(t, "up", p.Line())
			require.Equal(t, left, p.Rest())
			require.Equal(t, 125, p.Code())
			require.Contains(t, p.Stderr.String(), "was held for 10s, the maximum set by --max-hold")
			require.EqualValues(t, 0, s.Do(t, "EXISTS", name))
		})
	}
	got := program.Finish(t, s.URL(), "run", "--max-hold", "1m", redistest.Key(t), "--", "sh", "-c", "exit 3")
	require.Equal(t, program.Outcome{Code: 3, Stdout: "", Stderr: ""}, got)
}

func TestAtLeastKeepsLockForRemainder(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	got := program.Finish(t, s.URL(), "run", "--at-least", "1h", name, "--", "sh", "-c", "exit 5")
	require.Equal(t, program.Outcome{Code: 5, Stdout: "", Stderr: ""}, got)
	require.Greater(t, ttl(t, s, name), 30*time.Minute)

	name = redistest.Key(t)
	p := program.Start(t, s.URL(), "run", "--watchdog=2m", "--at-least=1m", name, "--", "sh", "-c", "trap '' TERM; sleep 0.2; echo done; exit 7")
	require.Equal(t, "done", p.Line())
	over := keepSending(p, syscall.SIGTERM)
	require.Empty(t, p.Rest(), "a signal ends the wait")
	require.Equal(t, 7, p.Code())
	over()
	require.Empty(t, p.Stderr.String())
	left := ttl(t, s, name)
	require.Positive(t, left)
	require.Less(t, left, time.Minute)
}

func TestSignalLeavesLockForRestOfAtLeast(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	p := program.Start(t, s.URL(), "run", "--watchdog=2m", "--at-least=1m", name, "--", "sh", "-c", program.EndsOnSIGTERM)
	require.Equal(t, "up", p.Line())
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGTERM))
	p.Rest() // a second signal is not needed
	require.Equal(t, 0, p.Code())
	require.Empty(t, p.Stderr.String())
	left := ttl(t, s, name)
	require.Positive(t, left)
	require.Less(t, left, time.Minute)
}

// A signal that does not stop redlatch must not leave waiters without a notification.
func TestUserSignalDoesNotShortenAtLeast(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, s := (&lockFlags{watchdog: 30 * time.Second, atLeast: 20 * time.Second}).held(t)
		signals := make(chan os.Signal, 1)
		signals <- syscall.SIGUSR2
		require.NoError(t, h.giveUp(t.Context(), signals))
		require.Equal(t, 20*time.Second, time.Since(h.since))
		require.Zero(t, ttl(t, s, "job"))
	})
}

func TestForwardedUserSignalDoesNotShortenAtLeast(t *testing.T) {
	testlevel.All(t, "it holds a lock for two seconds; TestUserSignalDoesNotShortenAtLeast uses fake time")
	t.Parallel()
	s := redistest.Shared(t)
	name := redistest.Key(t)
	p := program.Start(t, s.URL(), "run", "--watchdog=2m", "--at-least=2s", name, "--", "sh", "-c", strings.ReplaceAll(program.EndsOnSIGTERM, "TERM", "USR1"))
	require.Equal(t, "up", p.Line())
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGUSR1))
	p.Rest()
	require.Equal(t, 0, p.Code())
	require.EqualValues(t, 0, s.Do(t, "EXISTS", name))
}

// held returns a lock that is held on an in-memory server, in a bubble.
func (o *lockFlags) held(t *testing.T) (*held, *redistest.MiniServer) {
	t.Helper()
	s := redistest.Mini(t, embedded.WithInProcess())
	client, err := redlatch.New(s.Server.Dial, redlatch.WithWatchdogTimeout(o.watchdog))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	lock := o.lock(client, "job")
	hold, err := o.take(t.Context(), lock)
	require.NoError(t, err)
	return &held{lockFlags: o, hold: hold, lock: lock, lost: hold.Context(t.Context()), since: time.Now(), client: client}, s
}

func TestAbandonedReleaseKeepsLockForAtLeast(t *testing.T) {
	t.Parallel()
	const lease, ran = 30 * time.Second, time.Second
	for what, c := range map[string]struct {
		flags      lockFlags
		signal     time.Duration // after the command's end; 0 for none
		hold       bool          // it does not wait
		took, left time.Duration
	}{
		"over":                    {flags: lockFlags{atLeast: ran}},
		"within a lease":          {flags: lockFlags{atLeast: 20 * time.Second}, took: 19 * time.Second},
		"as long as --max-hold":   {flags: lockFlags{atLeast: 20*time.Second + 50*time.Millisecond, maxHold: 20 * time.Second}, took: 19 * time.Second}, // one counts from the reply
		"signal":                  {flags: lockFlags{atLeast: 20 * time.Second}, signal: 4 * time.Second, took: 4 * time.Second, left: 15 * time.Second},
		"hold, within a lease":    {flags: lockFlags{atLeast: 20 * time.Second}, hold: true, left: 19 * time.Second},
		"hold, fair":              {flags: lockFlags{atLeast: 20 * time.Second, fair: true}, hold: true, left: 19 * time.Second},
		"hold, fenced":            {flags: lockFlags{atLeast: 20 * time.Second, fenced: true}, hold: true, left: 19 * time.Second},
		"hold, read":              {flags: lockFlags{atLeast: 20 * time.Second, read: true}, hold: true, left: 19 * time.Second},
		"hold, write":             {flags: lockFlags{atLeast: 20 * time.Second, write: true}, hold: true, left: 19 * time.Second},
		"hold, nearly over":       {flags: lockFlags{atLeast: ran + time.Nanosecond}, hold: true},
		"longer than a lease":     {flags: lockFlags{atLeast: time.Hour}, left: time.Hour - ran},
		"fair, longer":            {flags: lockFlags{atLeast: time.Hour, fair: true}, left: time.Hour - ran},
		"fenced, longer":          {flags: lockFlags{atLeast: time.Hour, fenced: true}, left: time.Hour - ran},
		"fenced and fair, longer": {flags: lockFlags{atLeast: time.Hour, fenced: true, fair: true}, left: time.Hour - ran},
		"read, longer":            {flags: lockFlags{atLeast: time.Hour, read: true}, left: time.Hour - ran},
		"write, longer":           {flags: lockFlags{atLeast: time.Hour, write: true}, left: time.Hour - ran},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				c.flags.watchdog = lease
				h, s := c.flags.held(t)
				time.Sleep(ran)
				signals, began := make(chan os.Signal, 1), time.Now()
				if c.signal > 0 {
					time.AfterFunc(c.signal, func() { signals <- os.Interrupt })
				}
				if c.hold {
					signals = nil
				}
				require.NoError(t, h.giveUp(t.Context(), signals))
				require.InDelta(t, c.took.Seconds(), time.Since(began).Seconds(), 0.1)
				require.InDelta(t, c.left.Seconds(), ttl(t, s, "job").Seconds(), 0.1)
			})
		})
	}
}

// expired is a locker whose leases have expired when the reply arrives.
type expired struct{ locker }

func (expired) TryLock(context.Context, ...rlock.Option) (*rlock.Hold, error) {
	return nil, redlatch.ErrNotAcquired
}

func TestAtLeastShorterThanRoundTripIsWaitedOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, s := (&lockFlags{watchdog: 30 * time.Second, atLeast: time.Second}).held(t)
		h.lock = expired{h.lock}
		require.NoError(t, h.giveUp(t.Context(), nil))
		require.Equal(t, time.Second, time.Since(h.since))
		require.Zero(t, ttl(t, s, "job"))
		h, _ = (&lockFlags{watchdog: 30 * time.Second, atLeast: time.Hour}).held(t)
		h.lock = expired{h.lock}
		require.ErrorContains(t, h.giveUp(t.Context(), nil), "it may become free")
		require.Zero(t, time.Since(h.since))
	})
}

// keepSending sends sig repeatedly until the returned function is called, because the command may
// receive the first signals.
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

func TestSignalsAreForwarded(t *testing.T) {
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
func TestSignalEndsAtLeastAfterMaxHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, _ := (&lockFlags{watchdog: 30 * time.Second, maxHold: 20 * time.Second}).held(t)
		signals, came := make(chan os.Signal), make(chan error, 1)
		go func() { came <- h.await(t.Context(), time.Hour, signals) }()
		time.Sleep(time.Minute)
		signals <- os.Interrupt
		require.ErrorIs(t, <-came, redlatch.ErrMaxHold)
	})
}

func TestLossOfNamesRejectedRenewal(t *testing.T) {
	t.Parallel()
	refused := &transport.ServerError{Text: "NOREPLICAS Not enough good replicas to write."}
	for want, over := range map[string]error{
		"its lease of 5s expired":           redlatch.LossLeaseOver,
		"the lease was not renewed in time": redlatch.LossNotRenewed,
		"the lease was not renewed in time: the server rejected its renewal: NOREPLICAS Not enough good replicas to write": fmt.Errorf("%w: %w", redlatch.LossNotRenewed, refused),
		string(redlatch.LossTaken): fmt.Errorf("%w: %w", redlatch.LossTaken, refused),
	} {
		require.Equal(t, want, (&lockFlags{lease: 5 * time.Second}).lossOf(over, over))
	}
}

func TestGraceEndsWithinMargin(t *testing.T) {
	t.Parallel()
	g := &cli.Globals{Redis: redistest.Mini(t).URL()}
	for want, o := range map[time.Duration]*lockFlags{
		600 * time.Millisecond: {Globals: g, watchdog: time.Minute},
		300 * time.Millisecond: {Globals: g, watchdog: time.Minute, lease: 5 * time.Second},
	} {
		h, err := o.open(t.Context(), "job")
		require.NoError(t, err)
		require.Equal(t, want, h.grace())
		require.Equal(t, want, engine.EngineOf(h.client).LossMargin(cmp.Or(o.lease, o.watchdog))*6/10)
		require.NoError(t, h.hold.Unlock())
		h.disconnect()
	}
}
