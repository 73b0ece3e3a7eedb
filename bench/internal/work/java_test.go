package work_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/work"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// javaEnv contains the class path that scripts/bench-java.sh prints.
const javaEnv = "REDLATCH_BENCH_JAVA"

func startJava(t *testing.T) *worker {
	t.Helper()
	classPath := os.Getenv(javaEnv)
	if classPath == "" {
		t.Skipf("%s does not say where the Java contestant is: scripts/bench-java.sh prints it, where there is a JDK", javaEnv)
	}
	cmd := exec.CommandContext(t.Context(), "java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", classPath, "dev.redlatch.bench.Main")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	w := &worker{in: json.NewEncoder(in), out: json.NewDecoder(out), end: in.Close, done: make(chan error, 1)}
	go func() { w.done <- cmd.Wait() }()
	return w
}

// The JVM uses the same protocol, commands and names of figures. Its fair waiters poll without a pause while
// the lock is free and the first in the queue has not subscribed; on two busy cores that took 0.4 to 3 s.
func TestJavaWorkerMatchesGoWorker(t *testing.T) {
	t.Parallel()
	w := startJava(t)
	s := redistest.Start(t)
	want := map[work.Kind][]string{
		work.Pairs:    {work.Rate, work.P50, work.P99, work.CPU},
		work.Turns:    {work.Rate, work.P50, work.Longest, work.Luckiest},
		work.Wakeup:   {work.Rate, work.P50, work.Whole},
		work.Idle:     {work.Goroutines, work.Connections},
		work.Watchdog: {work.Count},
	}
	try := func(contestant string, kind work.Kind, reads, permits int) {
		v := w.measureCounted(t, work.Spec{
			Kind: kind, Contestant: contestant, Addr: s.Addr(), Key: contestant + string(kind), Reads: reads,
			Permits: permits, Goroutines: 4, Warmup: 300, Duration: 300,
		})
		for _, name := range want[kind] {
			assert.Positive(t, v[name], "%s, %s: %s of %v", contestant, kind, name, v)
		}
		assert.Zero(t, v[work.Gone])
	}
	for _, contestant := range []string{"redisson", "redisson-fair"} {
		for kind := range want {
			try(contestant, kind, 0, 0)
		}
	}
	try("redisson-rw", work.Turns, 90, 0)
	try("redisson-permits", work.Turns, 0, 2)
	try("redisson-counter", work.Turns, 0, 2)
	requireKnown(t, s, "redisson")
	require.NoError(t, w.end())
	require.NoError(t, <-w.done)
}

// requireKnown requires that every command in the server's statistics is sent by the contestant, by its
// scripts or by the benchmark.
func requireKnown(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	c, err := contest.Find(name)
	require.NoError(t, err)
	text, err := redis.String(s.Do(t, "INFO", "commandstats"), nil)
	require.NoError(t, err)
	known := append([]string{
		"exists", "hexists", "hincrby", "pexpire", "pttl", "hget", "hset", "get", "set", "del", "publish",
		"lindex", "lpop", "lrem", "rpush", "lrange", "zscore", "zadd", "zrem", "zrange", "zincrby",
		"decrby", "incrby", "zcount", "zrangebyscore",
		"hdel", "hgetall", "hkeys", "hlen", "info", "client|list",
	}, c.Sends...)
	for line := range strings.Lines(text) {
		if command, found := strings.CutPrefix(line, "cmdstat_"); found {
			command, _, _ = strings.Cut(command, ":")
			assert.Contains(t, known, command)
		}
	}
}
