package bench

import (
	"encoding/json"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// measured is what bench has measured, and what stands for it in golden files.
var measured = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`(p50|p99) \d\S*s\b`), "$1 TIME"},
	{regexp.MustCompile(`\d+ (a second)`), "N $1"},
	{regexp.MustCompile(`(1 caller,) \d+`), "$1 N"},
	{regexp.MustCompile(`(?m)(, of) \d+$`), "$1 N"},
	{regexp.MustCompile(`"(\w+_us|hand_overs|count|pairs_by_\d+)": \d[^,\n]*`), `"$1": N`},
}

// benchGolden compares what bench tells with a golden file.
func benchGolden(t *testing.T, name, text string) {
	t.Helper()
	for _, m := range measured {
		text = m.what.ReplaceAllString(text, m.with)
	}
	program.Golden(t, name, text)
}

func TestBenchMeasuresAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	began := time.Now()
	got := program.Finish(t, s.URL(), "bench", "--duration", "2s", "--json", "--prefix", "app:")
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Less(t, time.Since(began), 12*time.Second)
	var reported struct {
		Server    string
		Seconds   float64
		Pairs1    float64 `json:"pairs_by_1"`
		Pairs64   float64 `json:"pairs_by_64"`
		HandOvers float64 `json:"hand_overs"`
		WakeUp    struct {
			P50   float64 `json:"p50_us"`
			P99   float64 `json:"p99_us"`
			Count int
		} `json:"wake_up"`
		RoundTrip struct {
			P50 float64 `json:"p50_us"`
		} `json:"round_trip"`
	}
	require.NoError(t, json.Unmarshal([]byte(got.Stdout), &reported))
	benchGolden(t, "bench.json", got.Stdout)
	require.Equal(t, "redis://"+s.Addr(), reported.Server)
	require.InDelta(t, 2, reported.Seconds, 0)
	require.Positive(t, reported.RoundTrip.P50)
	require.Positive(t, reported.Pairs1)
	require.Positive(t, reported.Pairs64)
	require.Positive(t, reported.HandOvers)
	require.Positive(t, reported.WakeUp.Count)
	require.Positive(t, reported.WakeUp.P50)
	require.GreaterOrEqual(t, reported.WakeUp.P99, reported.WakeUp.P50)
	require.EqualValues(t, 0, s.Do(t, "DBSIZE"), "something is left on the server")
	stats := s.CommandStats(t)
	require.Zero(t, stats["keys"]+stats["flushall"]+stats["flushdb"])
}

func TestBenchPrintsText(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	got := program.Finish(t, s.URL(), "bench", "--duration", "1s")
	require.Equal(t, 0, got.Code, got.Stderr)
	program.Fits(t, got.Stdout)
	benchGolden(t, "bench", got.Stdout)
}

func TestBenchAsksBeforeItLoadsAnotherMachine(t *testing.T) {
	t.Parallel()
	for url, here := range map[string]bool{
		"127.0.0.1": true, "127.8.9.1": true, "::1": true, "localhost": true, "": true,
		"192.0.2.1": false, "redis.example": false, "10.0.0.1": false,
	} {
		require.Equal(t, here, isHere(url), url)
	}
	got := program.Finish(t, "redis://redis.invalid", "bench")
	require.Equal(t, 1, got.Code)
	require.Equal(t, "redlatch: redis://redis.invalid:6379 is on another machine: --yes loads it all the same\n", got.Stderr)
	got = program.Finish(t, "redis://redis.invalid", "bench", "--yes")
	require.Contains(t, got.Stderr, "cannot reach Redis at redis://redis.invalid:6379: ")
	for _, d := range []string{"0s", "61s"} {
		got = program.Finish(t, program.NoServer(t), "bench", "--duration", d)
		require.Equal(t, 2, got.Code)
		require.Contains(t, got.Stderr, "--duration must be from 1s to 1m0s")
	}
}

func TestInterruptedBenchEndsSoonAndFreesItsLocks(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := program.Start(t, s.URL(), "bench", "--duration", "1m")
	require.Eventually(t, func() bool { return s.Do(t, "DBSIZE") != int64(0) }, program.Soon, program.PollEvery)
	require.NoError(t, p.Cmd.Process.Signal(syscall.SIGINT))
	got := p.Outcome(program.Soon)
	require.Equal(t, program.Outcome{Code: 130, Stdout: "", Stderr: "redlatch: interrupted\n"}, got)
	require.EqualValues(t, 0, s.Do(t, "DBSIZE"))
}

func TestBenchSaysWhenTheServerGoesAway(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := program.Start(t, s.URL(), "bench", "--duration", "12s")
	// Locks are there for microseconds only: polling may see none for seconds.
	require.Eventually(t, func() bool { return s.CommandStats(t)["evalsha"] > 1000 }, program.Soon, program.PollEvery)
	s.Kill()
	got := p.Outcome(3 * program.Soon)
	require.Equal(t, 1, got.Code, "%+v", got)
	program.OneLine(t, got.Stderr)
	require.Contains(t, got.Stderr, "cannot reach Redis at ")
}

// A user that may not ask for the role of the server learns of a replica only by its refusals.
func TestBenchThatHadNoLockMeasuresNothing(t *testing.T) {
	testlevel.All(t, "replicas")
	t.Parallel()
	replica := redistest.StartReplica(t, redistest.Start(t))
	got := program.Finish(t, replica.GiveRights(t, []string{"Plain locks"}), "bench", "--duration", "1s", "--prefix", "app:")
	require.Equal(t, program.Outcome{
		Code: 1, Stderr: "redlatch: redis://" + replica.Addr() + ": no lock was had in time. `redlatch doctor` looks at the server\n",
	}, got)
}

func TestTimesAreBrief(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		12_345 * time.Nanosecond: "12µs", 1_234_567 * time.Nanosecond: "1.23ms", 2 * time.Second: "2s",
	} {
		require.Equal(t, want, brief(micros(d)))
	}
}
