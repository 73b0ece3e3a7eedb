package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

const (
	asWorker = "REDLATCH_EXAMPLE_JOBS"
	soon     = 20 * time.Second
)

func TestMain(m *testing.M) {
	if url := os.Getenv(asWorker); url != "" {
		os.Args = []string{"jobs", url}
		main()
		return
	}
	redistest.Main(m)
}

// hire starts a worker process. The test's cleanup kills it if it is still running.
func hire(t *testing.T, s *redistest.Server) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asWorker+"="+s.URL())
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewReader(out)
}

// list returns the first n jobs.
func list(n int) []string {
	var jobs []string
	for i := range n {
		jobs = append(jobs, "job "+strconv.Itoa(i))
	}
	return jobs
}

func give(t *testing.T, s *redistest.Server, jobs []string) {
	t.Helper()
	s.Do(t, "RPUSH", redis.Args{}.Add(todo).AddFlat(jobs)...)
}

func finished(t *testing.T, s *redistest.Server) []string {
	t.Helper()
	names, err := redis.Strings(s.Do(t, "LRANGE", done, 0, -1), nil)
	require.NoError(t, err)
	return names
}

func TestWorkersAlternateAndRunJobsOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	one, out1 := hire(t, s)
	two, out2 := hire(t, s)
	require.Eventually(t, func() bool { return s.Clients(t) >= 4 }, soon, 5*time.Millisecond, "each has two connections")
	jobs := list(8)
	give(t, s, jobs)
	require.Eventually(t, func() bool { return len(finished(t, s)) == len(jobs) }, soon, 5*time.Millisecond)
	require.Equal(t, jobs, finished(t, s))
	require.EqualValues(t, 0, s.Do(t, "EXISTS", todo))

	for _, cmd := range []*exec.Cmd{one, two} {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	}
	var shares []int
	for _, out := range []*bufio.Reader{out1, out2} {
		text, err := io.ReadAll(out)
		require.NoError(t, err)
		shares = append(shares, strings.Count(string(text), "working on "))
	}
	require.NoError(t, one.Wait())
	require.NoError(t, two.Wait())
	require.Equal(t, len(jobs), shares[0]+shares[1])
	require.InDelta(t, shares[0], shares[1], 4, "they alternate")
	lock := "jobs-example:lock"
	require.EqualValues(t, 0, s.Do(t, "EXISTS", lock, codec.QueueKey(lock), codec.TimeoutKey(lock)))
}

func TestSIGTERMFinishesJobAndLeavesQueue(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	give(t, s, list(100))
	busy, out := hire(t, s)
	line, err := out.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "working on job 0\n", line)
	lock := "jobs-example:lock"
	waiting, _ := hire(t, s)
	require.Eventually(t, func() bool {
		return s.Do(t, "LLEN", codec.QueueKey(lock)) == int64(1)
	}, soon, 5*time.Millisecond)
	for _, cmd := range []*exec.Cmd{waiting, busy} {
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait())
	}
	require.NotEmpty(t, finished(t, s))
	require.Equal(t, list(100)[:len(finished(t, s))], finished(t, s))
	require.EqualValues(t, 100-len(finished(t, s)), s.Do(t, "LLEN", todo))
	require.EqualValues(t, 0, s.Do(t, "EXISTS", lock, codec.QueueKey(lock), codec.TimeoutKey(lock)), "the lock is free at once")
}

func TestNextWorkerRunsJobOfDeadWorker(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	jobs := list(2)
	give(t, s, jobs)
	victim, out := hire(t, s)
	_, err := out.ReadString('\n')
	require.NoError(t, err)
	require.NoError(t, victim.Process.Kill())
	s.Do(t, "PEXPIRE", "jobs-example:lock", 1) // instead of waiting 30 s for the lease
	hire(t, s)
	require.Eventually(t, func() bool { return len(finished(t, s)) == len(jobs) }, soon, 5*time.Millisecond)
	require.Equal(t, jobs, finished(t, s))
}

// late is the connection of a worker that stalls after its job until its lease has expired.
type late struct {
	redis.Conn
	meanwhile func()
}

func (l late) Send(command string, args ...any) error {
	if command == "MULTI" {
		l.meanwhile()
	}
	return l.Conn.Send(command, args...)
}

func TestLateWorkerKeepsUnfinishedJobQueued(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	give(t, s, list(2))
	worker := late{s.Dial(t), func() { require.NoError(t, next(t.Context(), s.Dial(t))) }}
	require.NoError(t, next(t.Context(), worker))
	require.EqualValues(t, []any{[]byte("job 1")}, s.Do(t, "LRANGE", todo, 0, -1))
}
