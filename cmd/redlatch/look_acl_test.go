package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

func readOnlyUser(t *testing.T) (*redistest.Server, string) {
	t.Helper()
	s := redistest.Start(t)
	return s, s.GiveLooks(t)
}

func TestDocumentedUserCanInspect(t *testing.T) {
	t.Parallel()
	s, url := readOnlyUser(t)
	const name = "app:billing-run"
	program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
	program.Listen(t, s, name, program.RedissonOwner)
	s.Do(t, "HSET", name, program.SomeOwner, 1)
	s.Do(t, "SET", engine.LabelKey(program.ClientID), program.LabelText)
	program.Enqueue(t, s, name, program.ClientID.String()+":1", time.Hour)

	program.Enqueue(t, s, "app:stuck", program.RedissonOwner, time.Hour)
	s.Do(t, "HSET", "app:books", "mode", "read", program.RedissonOwner, 1)
	s.Do(t, "HSET", "app:fenced", program.SomeOwner, 1)
	s.Do(t, "SET", protocol.TokenKey("app:fenced"), 42)
	got := program.Finish(t, url, "list")
	require.Equal(t, program.Outcome{Stdout: got.Stdout}, got)
	out := got.Stdout
	require.Regexp(t, `app:fenced +plain .*\n  token  42\n`, out)
	require.Contains(t, program.Finish(t, url, "status", "app:fenced").Stdout, "\n  token  42\n")
	require.Regexp(t, name+` +fair +Redlatch 00000001:7 +1 +none +2\n`, out)
	require.Regexp(t, `app:books +r/w +Redisson 0b8f3a11:57 +1 +none +-\n`, out)
	require.Regexp(t, `app:stuck +fair +free +- +- +1\n  next   Redisson 0b8f3a11:57\n`, out)
	out = program.OK(t, url, "status", name)
	require.Contains(t, out, "subscribed yes, Redisson")
	require.Contains(t, out, "subscribed no, Redlatch")
	require.Contains(t, program.Words(out), `label "`+program.LabelText+`"`)
	s.Do(t, "RPUSH", "app:list", "x")
	require.Contains(t, program.Finish(t, url, "status", "app:list").Stderr, "holds a list")

	for _, pattern := range []string{name, "app:*"} {
		p := program.Start(t, url, "watch", "--json", pattern)
		program.Events(p, "held")
		s.Do(t, "PUBLISH", "redisson_lock__channel:{"+name+"}", "0")
		s.Do(t, "PUBLISH", "redisson_lock__channel:{"+name+"}:"+program.RedissonOwner, "0")
		reported := program.Events(p, "woken")
		require.Equal(t, name, reported[len(reported)-1]["name"])
		require.NoError(t, p.Cmd.Process.Signal(program.Interrupt))
		got := p.Outcome(program.Soon)
		require.Equal(t, program.CodeInterrupted, got.Code)
		require.Empty(t, got.Stderr)
	}
}

func TestReplicaOutputIsMarked(t *testing.T) {
	testlevel.All(t, "replicas")
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	warning := "redlatch: warning: " + replica.URL() + " is a replica of " + master.Addr() + ": "
	for _, args := range [][]string{{"status", "job"}, {"status", "--json", "job"}, {"list", "*"}, {"watch", "--for", "10s", "job"}} {
		got := program.Finish(t, replica.URL(), args...)
		require.Equal(t, 0, got.Code, got.Stderr)
		require.Equal(t, 1, strings.Count(got.Stderr, warning), "%v: %s", args, got.Stderr)
		require.Equal(t, args[1] == "--json", strings.Contains(got.Stdout, `"replica_of": "`+master.Addr()+`"`))
		require.NotContains(t, program.Finish(t, master.URL(), args...).Stderr, "replica")
	}
}

func TestWriteCommandsRejectReplicaAndNameMaster(t *testing.T) {
	testlevel.All(t, "replicas")
	t.Parallel()
	master := redistest.Start(t)
	replica := redistest.StartReplica(t, master)
	master.Do(t, "HSET", "held", program.SomeOwner, 1)
	program.Enqueue(t, master, "stuck", program.RedissonOwner, time.Hour)
	require.Eventually(t, func() bool { return replica.Do(t, "EXISTS", codec.QueueKey("stuck")) == int64(1) },
		program.Soon, program.PollEvery)
	says := "redlatch: " + replica.URL() + " is a replica of " + master.Addr() +
		" and rejects writes: use its master, with --redis redis://" + master.Addr() + "\n"
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
		"run held -- true":                                 125,
		"run --wait 1s free -- true":                       125,
	} {
		require.Equal(t, program.Outcome{Code: code, Stderr: says}, program.Finish(t, replica.URL(), strings.Fields(line)...), line)
	}
	require.EqualValues(t, 1, master.Do(t, "HLEN", "held"))
	require.EqualValues(t, 1, master.Do(t, "LLEN", codec.QueueKey("stuck")))
}

func TestRunWaitsForReplicaPromotion(t *testing.T) {
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
