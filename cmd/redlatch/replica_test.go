package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// Nothing can be written to a replica: commands that would write say so at once, in one line, with
// the master.
func TestCommandsThatWriteRefuseAReplicaAndNameItsMaster(t *testing.T) {
	testlevel.All(t, "replicas")
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	master.Do(t, "HSET", "held", program.SomeOwner, 1)
	program.Enqueue(t, master, "stuck", program.RedissonOwner, time.Hour)
	require.Eventually(t, func() bool { return replica.Do(t, "EXISTS", codec.QueueKey("stuck")) == int64(1) },
		program.Soon, program.PollEvery)
	says := "redlatch: " + replica.URL() + " is a replica of " + master.Addr() +
		", and nothing can be written to it: name the master, with --redis redis://" + master.Addr() + "\n"
	for line, code := range map[string]int{
		"unlock --force held":                              2,
		"unlock --force free":                              2,
		"unlock --force --even-if-alive held":              2,
		"evict stuck " + program.RedissonOwner:             2,
		"evict --even-if-alive stuck " + program.SomeOwner: 2,
		"evict --all-dead stuck":                           2,
		"evict --all-dead free":                            2,
		"demo --redis " + replica.URL():                    2,
		"run --try held -- true":                           125,
		"run --try free -- true":                           125,
		"run --try --fair stuck -- true":                   125,
		"run --try --fenced free -- true":                  125,
		"run --try --write free -- true":                   125,
		"run --try --permits crawl:3 -- true":              125,
		"run --wait 1s held -- true":                       125,
		"run --wait 1s free -- true":                       125,
	} {
		began := time.Now()
		got := program.Finish(t, replica.URL(), strings.Fields(line)...)
		require.Equal(t, program.Outcome{Code: code, Stderr: says}, got, line)
		require.Less(t, time.Since(began), program.Soon, line)
	}
	// A lock that is held is waited for, and may be in vain.
	got := program.Finish(t, replica.URL(), "run", "held", "--", "true")
	require.Equal(t, program.Outcome{Code: 125, Stderr: says}, got)
	require.EqualValues(t, 1, master.Do(t, "HLEN", "held"))
	require.EqualValues(t, 1, master.Do(t, "LLEN", codec.QueueKey("stuck")))
}

// A replica that becomes the master while a lock is waited for gives it away.
func TestRunWaitsForAReplicaThatBecomesTheMaster(t *testing.T) {
	testlevel.All(t, "replicas")
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	p := program.Start(t, replica.URL(), "run", "job", "--", "echo", "in")
	require.Eventually(t, func() bool { return replica.CommandStats(t)["role"] > 0 }, program.Soon, program.PollEvery)
	replica.Lead(t)
	got := p.Outcome(program.Soon)
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Equal(t, "in\n", got.Stdout)
}
