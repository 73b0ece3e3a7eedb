//go:build unix

package run_test

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
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
	name  string
	death <-chan time.Time
	over  time.Time // when its key expires if it is not renewed: at this moment or a little earlier
}

func TestServerThatFreezesCostsTheCommandItsLifeBeforeTheKeyExpires(t *testing.T) {
	testlevel.All(t, "real leases, 13 s")
	t.Parallel()
	batches(t, 2, func(t *testing.T, trials int) {
		t.Helper()
		s := redistest.Start(t)
		all := make([]*frozen, trials)
		for i := range all {
			name := redistest.Key(t)
			// The longest margin there is: these machines are slow at times.
			pipe, death := awaitDeaths(t)
			p := program.Start(t, s.URL(), "run", "--watchdog", "10s", name, "--", "sh", "-c", "exec 3>"+pipe+"; "+quiet)
			all[i] = &frozen{p: p, name: name, death: death}
		}
		for _, f := range all {
			require.Equal(t, "up", f.p.Line())
		}
		freeze(t, s, all)
		defer s.Resume()
		least := time.Hour
		for _, f := range all {
			died := <-f.death
			require.True(t, died.Before(f.over), "the command outlived its lock by %v", died.Sub(f.over))
			require.Greater(t, died, f.over.Add(-5*time.Second), "given up without need")
			require.Equal(t, 125, f.p.Code())
			least = min(least, f.over.Sub(died))
		}
		t.Logf("%d commands died before their keys expired, the last one %v before", trials, least)
	})
}

// freeze stops the server, and tells when the keys expire: no renewal comes between
// the asking and the standing still.
func freeze(t *testing.T, s *redistest.Server, all []*frozen) {
	t.Helper()
	c := s.Dial(t)
	require.NoError(t, c.Send("MULTI"))
	for _, f := range all {
		require.NoError(t, c.Send("PTTL", f.name))
	}
	require.NoError(t, c.Send("CLIENT", "PAUSE", time.Hour.Milliseconds()))
	asked := time.Now()
	replies, err := redis.Values(c.Do("EXEC"))
	require.NoError(t, err)
	for i, f := range all {
		ms, ok := replies[i].(int64)
		require.True(t, ok)
		require.Positive(t, ms)
		f.over = asked.Add(time.Duration(ms) * time.Millisecond)
	}
	s.Pause()
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
