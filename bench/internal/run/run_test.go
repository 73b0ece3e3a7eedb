package run_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/run"
	"github.com/redlatch/redlatch/bench/internal/work"
)

// asWorker is the argument that makes the test binary a worker.
const asWorker = "bench-test-worker"

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == asWorker {
		if err := work.Serve(context.Background(), os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func entrant(t *testing.T, name string) run.Entrant {
	t.Helper()
	c, err := contest.Find(name)
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	return run.Entrant{Label: name, Contestant: c, Command: []string{self, asWorker}}
}

// chosen returns the case id at one size.
func chosen(t *testing.T, id string, level int) run.Case {
	t.Helper()
	for _, c := range run.Cases() {
		if c.ID == id {
			c.Levels, c.Place = []int{level}, host.Free
			return c
		}
	}
	t.Fatalf("no case %s", id)
	return run.Case{}
}

func needsServer(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a server, and -short asks for tests without")
	}
}

const (
	// enough is the minimum count in a sample that is checked.
	enough = 50
	// mostTries limits how often a case is repeated because stalls kept a sample below enough.
	mostTries = 10
)

// runCounted repeats a case until each sample has enough work.
func runCounted(t *testing.T, r *run.Runner, c run.Case) []run.Sample {
	t.Helper()
	for try := 1; ; try++ {
		samples, err := r.Run(c)
		require.NoError(t, err)
		least := math.Inf(1)
		for _, s := range samples {
			require.Empty(t, s.Error)
			least = min(least, s.Values[work.Count])
		}
		if least >= enough {
			return samples
		}
		require.Less(t, try, mostTries, "the least work of a sample: %v", least)
	}
}

func TestContestantsAlternateEachRound(t *testing.T) {
	t.Parallel()
	needsServer(t)
	r := &run.Runner{
		Entrants: []run.Entrant{entrant(t, "redlatch"), entrant(t, "raw-pipelined")},
		Rounds:   2, Scale: 0.2, Swap: true, Log: io.Discard,
	}
	samples := runCounted(t, r, chosen(t, "a", 2))
	var order []string
	for _, s := range samples {
		order = append(order, fmt.Sprint(s.Round, s.Entrant))
		assert.Positive(t, s.Values[work.Rate])
		// The setup's requests count too, and a busy machine divides them by fewer pairs.
		assert.Greater(t, s.Values[run.Requests], 1.7, s.Entrant)
		assert.Less(t, s.Values[run.Requests], 3.0, s.Entrant)
		assert.Positive(t, s.Values[run.RedisCPU])
	}
	assert.Equal(t, []string{"1redlatch", "1raw-pipelined", "2raw-pipelined", "2redlatch"}, order)
}

func TestRunSumsProcesses(t *testing.T) {
	t.Parallel()
	needsServer(t)
	r := &run.Runner{Entrants: []run.Entrant{entrant(t, "redlatch")}, Rounds: 1, Scale: 0.2, Log: io.Discard}
	c := chosen(t, "c", 2)
	c.Processes = 3
	samples := runCounted(t, r, c)
	require.Len(t, samples, 1)
	v := samples[0].Values
	assert.Positive(t, v[work.Rate])
	assert.GreaterOrEqual(t, v[run.Most], 100.0/3-0.1)
	assert.LessOrEqual(t, v[run.Least], 100.0/3+0.1)
	assert.InDelta(t, 100, v[run.Ours], 1e-9)
}

func TestClientFailureDoesNotStopOthers(t *testing.T) {
	t.Parallel()
	needsServer(t)
	dead := entrant(t, "raw-pipelined")
	dead.Label, dead.Command = "dead", []string{"false"}
	foreign := entrant(t, "raw-pipelined")
	foreign.Label, foreign.Contestant.Name = "stranger", "nobody"
	var log strings.Builder
	r := &run.Runner{
		Entrants: []run.Entrant{dead, foreign, entrant(t, "redlatch")},
		Rounds:   1, Scale: 0.1, Log: &log,
	}
	samples, err := r.Run(chosen(t, "a", 1))
	require.NoError(t, err)
	require.Len(t, samples, 3)
	assert.NotEmpty(t, samples[0].Error)
	assert.Contains(t, samples[1].Error, "nobody")
	assert.Empty(t, samples[2].Error)
	assert.Contains(t, log.String(), "dead")
}

// With a negative share every measurement is disturbed.
func TestDisturbedRoundsAreRepeatedUpToLimit(t *testing.T) {
	t.Parallel()
	needsServer(t)
	for patience, again := range map[time.Duration]int{0: 0, time.Nanosecond: 1, time.Hour: 8} {
		r := &run.Runner{
			Entrants: []run.Entrant{entrant(t, "raw-pipelined")}, Rounds: 1, Scale: 0.02, Log: io.Discard,
			Allowed: -1, Patience: patience,
		}
		samples, err := r.Run(chosen(t, "a", 1))
		require.NoError(t, err)
		require.Len(t, samples, 1)
		assert.Equal(t, again, samples[0].Again)
		assert.True(t, samples[0].Disturbed, "it is reported")
		assert.NotEmpty(t, samples[0].Values)
	}
	r := &run.Runner{
		Entrants: []run.Entrant{entrant(t, "raw-pipelined")}, Rounds: 1, Scale: 0.02, Log: io.Discard,
		Allowed: 1, Patience: time.Hour,
	}
	samples, err := r.Run(chosen(t, "a", 1))
	require.NoError(t, err)
	assert.Zero(t, samples[0].Again)
	assert.False(t, samples[0].Disturbed)
}

func TestMixedCaseRequiresSecondClient(t *testing.T) {
	t.Parallel()
	r := &run.Runner{Entrants: []run.Entrant{entrant(t, "redlatch")}, Rounds: 1, Log: io.Discard}
	samples, err := r.Run(chosen(t, "c-mixed", 1))
	require.NoError(t, err)
	assert.Empty(t, samples)
	if testing.Short() {
		return
	}
	// Only the plain lock of Redisson may be the mate.
	mate, other := entrant(t, "redlatch-fair"), entrant(t, "redlatch-counter")
	mate.Label, mate.Contestant.Role, mate.Contestant.Name = "redisson", contest.Peer, "redlatch"
	other.Label, other.Contestant.Role = "redisson-counter", contest.Peer
	r.Entrants, r.Scale = append(r.Entrants, mate, other), 0.2
	samples = runCounted(t, r, chosen(t, "c-mixed", 2))
	require.Len(t, samples, 1)
	assert.InDelta(t, 50, samples[0].Values[run.Ours], 49)
}

func TestCasesHaveFiguresAndClients(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range run.Cases() {
		assert.False(t, seen[c.ID], "two cases are called %s", c.ID)
		seen[c.ID] = true
		assert.NotEmpty(t, c.Figures, c.ID)
		assert.NotEmpty(t, c.Levels, c.ID)
		fits := 0
		for _, who := range contest.All() {
			if c.Fits(who) {
				fits++
			}
		}
		assert.Positive(t, fits, c.ID)
	}
	for _, q := range run.QuickCases() {
		_, err := contest.Find(q.Contestant)
		require.NoError(t, err)
	}
}
