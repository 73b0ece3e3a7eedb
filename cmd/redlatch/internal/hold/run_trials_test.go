//go:build unix

package hold

import (
	"errors"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// trialsEnv is how often that is tried which must never fail, in place of a few
// times.
const trialsEnv = "REDLATCH_TRIALS"

// batch is how many trials run at a time.
const batch = 10

// batches runs body for as many trials as there are to be, in batches of at most ten,
// each of which ends before the next one begins.
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

// quiet is stubborn and takes no time of the machine, of which there is little when
// ten of them are to die on time.
const quiet = `trap '' TERM; echo up; exec cat`

// frozen is a command whose lock's server stands still.
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

// freezeServer stops the server of commands, waits for their deaths, and returns an error if
// one of them came too late.
func freezeServer(t *testing.T, trials int) (late error) {
	t.Helper()
	s := redistest.Start(t)
	all, names := make([]frozen, trials), make([]string, trials)
	for i := range all {
		names[i] = redistest.Key(t)
		// The longest margin there is: these machines are slow at times.
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
			require.Empty(t, p.Rest()) // returns when they are all dead
			require.Equal(t, -1, p.Code())
		}
	})
}
