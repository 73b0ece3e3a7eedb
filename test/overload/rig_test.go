package overload_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

func TestMain(m *testing.M) {
	if os.Getenv("REDLATCH_OVERLOAD") == "full" {
		fmt.Print("| load | outcome | renewal late by | peak memory |\n|---|---|---:|---:|\n")
	}
	redistest.Main(m)
}

// sized returns n, or a tenth without full load.
func sized(n int) int {
	if os.Getenv("REDLATCH_OVERLOAD") == "full" {
		return n
	}
	return n / 10
}

const (
	// lease is the lease of the kept holds, which are renewed every renewed. A connection may owe a reply for
	// a quarter of it, so a stall of two seconds must not lose a hold.
	lease, renewed = 18 * time.Second, lease / 3
	// dueWith is the rest of a hold's lease when its renewal is due, less the loss margin.
	dueWith = lease - min(lease/10, time.Second) - renewed
	kept    = 200 // holds: two renewal scripts
)

// rig is a client under load.
type rig struct {
	t      *testing.T
	server *redistest.Server
	client *redlatch.Client
	holds  []*rlock.Hold
	log    *redistest.Journal

	least    atomic.Int64 // the shortest rest of a lease, in nanoseconds
	slowest  atomic.Int64 // the longest renewal
	failures atomic.Int64 // failed renewals
	done     atomic.Int64 // holds renewed so far, each time
	peak     atomic.Uint64
	heap     uint64 // before the load
	routines int
	stop     context.CancelFunc
	sampler  sync.WaitGroup
}

func (r *rig) renewed(renewal redlatch.Renewed) {
	if renewal.Err != nil {
		r.failures.Add(1)
	} else {
		r.done.Add(int64(renewal.Holds - renewal.Lost))
	}
	for old := r.slowest.Load(); int64(renewal.Took) > old; old = r.slowest.Load() {
		r.slowest.CompareAndSwap(old, int64(renewal.Took))
	}
}

// newRig starts a server and a client with kept holds. The client connects to the address from at.
func newRig(t *testing.T, at func(s *redistest.Server) string, opts ...redlatch.Option) *rig {
	t.Helper()
	r := &rig{t: t, server: redistest.Start(t)}
	var err error
	log, logger := redistest.NewJournal()
	r.log = log
	opts = append(opts, redlatch.WithObserver(redlatch.Observer{Renewed: r.renewed}), redlatch.WithLogger(logger), redlatch.WithWatchdogTimeout(lease))
	r.client, err = redlatch.Open(t.Context(), at(r.server), opts...)
	require.NoError(t, err)
	for range kept {
		hold, err := rlock.New(r.client, redistest.Key(t)).Lock(t.Context())
		require.NoError(t, err)
		r.holds = append(r.holds, hold)
	}
	r.pair() // loads the scripts
	r.heap, r.routines = heapInUse(), runtime.NumGoroutine()
	r.least.Store(int64(lease))
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	r.sampler.Go(func() { r.sample(ctx) })
	t.Cleanup(func() {
		cancel()
		r.sampler.Wait()
		require.NoError(t, r.client.Close())
	})
	return r
}

// sample records the rest of the leases and the memory in use.
func (r *rig) sample(ctx context.Context) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, h := range r.holds {
			r.least.Store(min(r.least.Load(), int64(h.Remaining())))
		}
		if i%25 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			r.peak.Store(max(r.peak.Load(), m.HeapAlloc+m.StackInuse))
		}
	}
}

// calmed requires that everything is as before the load, and that no hold was lost. It logs the figures
// as a row of a table.
func (r *rig) calmed(load int, what string, took time.Duration, y *results) {
	r.t.Helper()
	ended := time.Now()
	pair := r.pair()
	r.until(fmt.Sprintf("%d keys, as before the load", kept), func() bool { return r.size() == kept })
	r.until("the goroutines are gone", func() bool { return runtime.NumGoroutine() <= r.routines+25 }) // of a second connection
	settled := since(ended)
	r.stop()
	r.sampler.Wait()
	after := heapInUse()
	for _, h := range r.holds {
		require.NoError(r.t, h.Err(), "a hold was lost")
	}
	lateness := dueWith - time.Duration(r.least.Load())
	r.t.Logf("renewals: at most %v late, the slowest took %v, %d failed", lateness.Round(time.Millisecond),
		time.Duration(r.slowest.Load()).Round(time.Millisecond), r.failures.Load())
	r.t.Logf("afterwards: a pair in %v, all calm after %v", pair, settled)
	r.t.Logf("memory: %s before, %s at the peak with stacks, %s after", mega(r.heap), mega(r.peak.Load()), mega(after))
	r.t.Logf("| %d %s | %.1f s: %s | %.1f s | %s |", load, what, took.Seconds(), y.counts(), max(0, lateness).Seconds(), mega(r.peak.Load()))
	require.Empty(r.t, r.log.Lines("connection lost", "cannot connect"))
	require.Positive(r.t, r.slowest.Load(), "nothing was renewed: the test proves nothing")
	require.Zero(r.t, r.failures.Load())
	// The runtime keeps memory of ended goroutines.
	require.Less(r.t, after, r.heap+(8<<20)+600*uint64(load), "memory is kept")
}

// untilRenewed waits until each hold was renewed.
func (r *rig) untilRenewed() { r.until("the holds are renewed", r.allRenewed) }

func (r *rig) allRenewed() bool { return r.done.Load() >= kept }

// channels returns the number of channels with subscribers.
func (r *rig) channels() int {
	stats, err := redis.String(r.server.Do(r.t, "INFO", "stats"), nil)
	require.NoError(r.t, err)
	_, after, _ := strings.Cut(stats, "pubsub_channels:")
	line, _, _ := strings.Cut(after, "\r\n")
	n, err := strconv.Atoi(line)
	require.NoError(r.t, err)
	return n
}

// pair returns the time of a lock and an unlock.
func (r *rig) pair() time.Duration {
	r.t.Helper()
	began := time.Now()
	hold, err := rlock.New(r.client, redistest.Key(r.t)).Lock(r.t.Context())
	require.NoError(r.t, err)
	require.NoError(r.t, hold.Unlock())
	return since(began)
}

func (r *rig) size() int64 {
	n, err := redis.Int64(r.server.Do(r.t, "DBSIZE"), nil)
	require.NoError(r.t, err)
	return n
}

// until waits for a condition, however busy the machine is.
func (r *rig) until(what string, cond func() bool) {
	r.t.Helper()
	for limit := time.Now().Add(3 * time.Minute); !cond(); <-time.After(10 * time.Millisecond) {
		require.True(r.t, time.Now().Before(limit), "never: %s", what)
	}
}

// since returns a time for the log: no verdict depends on it.
func since(began time.Time) time.Duration {
	now := time.Now()
	return now.Sub(began).Round(time.Microsecond)
}

// heapInUse returns the size of live objects.
func heapInUse() uint64 {
	runtime.GC()
	runtime.GC() // frees pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func mega(bytes uint64) string {
	return strconv.FormatFloat(float64(bytes)/(1<<20), 'f', 1, 64) + " MiB"
}
