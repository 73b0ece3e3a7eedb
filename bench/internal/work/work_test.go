package work_test

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/bench/internal/work"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// worker is a Serve in a goroutine.
type worker struct {
	in   *json.Encoder
	out  *json.Decoder
	end  func() error
	done chan error
}

func startWorker(t *testing.T) *worker {
	t.Helper()
	toWorker, in := io.Pipe()
	out, fromWorker := io.Pipe()
	w := &worker{in: json.NewEncoder(in), out: json.NewDecoder(out), end: in.Close, done: make(chan error, 1)}
	go func() {
		w.done <- work.Serve(t.Context(), toWorker, fromWorker)
		_ = fromWorker.Close()
	}()
	return w
}

func (w *worker) hear(t *testing.T, event string) work.Values {
	t.Helper()
	var e work.Event
	require.NoError(t, w.out.Decode(&e))
	require.Equal(t, event, e.Event, e.Error)
	require.Empty(t, e.Error)
	return e.Values
}

// measure runs one conversation and returns its figures.
func (w *worker) measure(t *testing.T, spec work.Spec) work.Values {
	t.Helper()
	require.NoError(t, w.in.Encode(spec))
	w.hear(t, work.EventReady)
	require.NoError(t, w.in.Encode("go"))
	v := w.hear(t, work.EventMeasured)
	require.NoError(t, w.in.Encode("stop"))
	w.hear(t, work.EventDone)
	return v
}

// mostTries limits the attempts of measureCounted. The last one takes 128 times as long as the
// first.
const mostTries = 8

// measureCounted measures until work was counted and all values in want are positive. Each attempt
// uses another key and takes twice as long, because on a busy machine a client can stall during a
// whole measurement.
func (w *worker) measureCounted(t *testing.T, spec work.Spec, want ...string) work.Values {
	t.Helper()
	for try := 1; ; try, spec.Key, spec.Duration = try+1, spec.Key+"+", 2*spec.Duration {
		v := w.measure(t, spec)
		count, counts := v[work.Count]
		missing := slices.DeleteFunc(slices.Clone(want), func(name string) bool { return v[name] > 0 })
		if (!counts || count > 0) && len(missing) == 0 {
			return v
		}
		t.Logf("%s, %s: %d ms without work, or %v: %v", spec.Contestant, spec.Kind, spec.Duration, missing, v)
		require.Less(t, try, mostTries, "%s, %s: no work was counted, or %v", spec.Contestant, spec.Kind, missing)
	}
}

// Not parallel: it measures the heap and goroutines of the process, which has one CPU profile at a time.
func TestWorkerMeasuresAllKinds(t *testing.T) {
	s := redistest.Start(t)
	w := startWorker(t)
	spec := work.Spec{Contestant: "redlatch", Addr: s.Addr(), Key: "k", Goroutines: 4, Warmup: 20, Duration: 150}
	for kind, want := range map[work.Kind][]string{
		work.Pairs:    {work.Rate, work.P50, work.P99, work.Allocs, work.CPU},
		work.Turns:    {work.Rate, work.P50, work.Longest, work.Luckiest, work.Unluckiest},
		work.Wakeup:   {work.Rate, work.P50, work.Whole},
		work.Idle:     {work.Heap, work.Goroutines, work.Connections},
		work.Watchdog: {work.Count},
	} {
		spec.Kind, spec.Key, spec.Goroutines = kind, string(kind), 4
		if kind == work.Idle {
			spec.Goroutines = 500
		}
		v := w.measureCounted(t, spec, want...)
		if kind == work.Watchdog {
			assert.Zero(t, v[work.Gone])
			assert.Positive(t, v[work.Heap], "of each lock")
		}
		s.Do(t, "FLUSHALL")
	}
	spec.Contestant, spec.Kind, spec.Reads, spec.Goroutines = "redlatch-rw", work.Turns, 50, 4
	require.Positive(t, w.measureCounted(t, spec)[work.Rate])
	spec.Reads, spec.Permits = 0, 2
	for _, semaphore := range []string{"redlatch-permits", "redlatch-counter"} {
		spec.Contestant, spec.Key = semaphore, semaphore
		require.Positive(t, w.measureCounted(t, spec)[work.Rate])
		left, err := redis.Int(s.Do(t, "GET", semaphore), nil)
		require.NoError(t, err)
		require.Equal(t, 2, left, "all are back")
	}
	spec = work.Spec{Kind: work.Pairs, Contestant: "redlatch", Addr: s.Addr(), Key: "k", Goroutines: 2, Duration: 50}
	spec.Profile = filepath.Join(t.TempDir(), "pairs.pprof")
	w.measure(t, spec)
	info, err := os.Stat(spec.Profile)
	require.NoError(t, err)
	assert.Positive(t, info.Size())
	require.NoError(t, w.end())
	require.NoError(t, <-w.done)
}

func TestPipelinedLimitReleasesLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	w := startWorker(t)
	// Many short runs, to end it at every step.
	var pairs float64
	for i := range 60 {
		goroutines := []int{1, 2, 7, 64, 500, 501}[i%6]
		v := w.measure(t, work.Spec{
			Kind: work.Pairs, Contestant: "raw-pipelined", Addr: s.Addr(), Key: "p",
			Goroutines: goroutines, Duration: 10,
		})
		pairs += v[work.Count] // a round may be too short for one
		assert.Equal(t, int64(0), s.Do(t, "DBSIZE"), "%d goroutines", goroutines)
	}
	assert.Positive(t, pairs)
	require.NoError(t, w.end())
	require.NoError(t, <-w.done)
}

func TestWorkerRejectsUnsupportedWork(t *testing.T) {
	t.Parallel()
	w := startWorker(t)
	for _, spec := range []work.Spec{
		{Kind: work.Pairs, Contestant: "nobody"},
		{Kind: work.Pairs, Contestant: "redisson"},
		{Kind: "sleep", Contestant: "redlatch"},
		{Kind: work.Turns, Contestant: "raw-pipelined"},
		{Kind: work.Turns, Contestant: "redlatch", Addr: redistest.Start(t).Addr(), Reads: 1},
	} {
		require.NoError(t, w.in.Encode(spec))
		var e work.Event
		require.NoError(t, w.out.Decode(&e))
		assert.Equal(t, work.EventDone, e.Event)
		assert.NotEmpty(t, e.Error)
	}
	require.NoError(t, w.end())
	require.NoError(t, <-w.done)
}
