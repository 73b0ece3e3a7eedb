package failovers

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

const (
	// downAfter exceeds any stall of the machine.
	downAfter, measuredDownAfter = 3 * time.Second, time.Second
	// The bounds are far above the times that were measured on an idle machine.
	pauseBound, lossBound, servedBound = 20 * time.Second, 12 * time.Second, 5 * time.Second
)

// Run causes each failure in a cluster and with Sentinels. With REDLATCH_FAILOVER=full, it uses Redis and Valkey and
// five times as many locks, and logs the figures that docs/topologies.md summarizes. Otherwise, leases are twice as
// long as the default, so that a holder that learns of a loss only when it renews its lease is late.
func Run(t *testing.T, a Adapter) {
	t.Helper()
	full := os.Getenv("REDLATCH_FAILOVER") == "full"
	each, silence := size{50, 30 * time.Second}, measuredDownAfter
	if !full {
		t.Parallel()
		each, silence = size{10, 60 * time.Second}, downAfter
	}
	var rows []string
	for i, deployment := range []string{"cluster", "Sentinel"} {
		for j, f := range failures {
			for k, servers := range []string{"Redis", "Valkey"} {
				what := deployment + ", " + f.name
				try := func(t *testing.T) (row string) {
					t.Helper()
					figures := f.try(t, a.start(t, deployment, servers, silence), each)
					figures.check(t, f.lossBoundOf(deployment, each))
					row = figures.row(what, servers, a.Name)
					t.Log(row)
					return row
				}
				switch {
				case full:
					t.Run(what+", "+servers, func(t *testing.T) { rows = append(rows, try(t)) })
				case (i+j+k)%2 == 0:
					t.Run(what+", "+servers, func(t *testing.T) { t.Parallel(); try(t) })
				}
			}
		}
	}
	if full {
		t.Log("\n" + columns + "\n" + strings.Join(rows, "\n"))
	}
}

func (f failure) lossBoundOf(deployment string, s size) time.Duration {
	if f.silent && deployment == "cluster" {
		return lossBound + s.lease/3
	}
	return lossBound
}

func (a Adapter) start(t *testing.T, deployment, servers string, silence time.Duration) deployment {
	t.Helper()
	opts := []redistest.Option{redistest.WithArgs("--enable-debug-command", "local")}
	if servers == "Valkey" {
		opts = append(opts, redistest.WithBinary(redistest.ValkeyBinary(t)))
	}
	if deployment == "Sentinel" {
		return withSentinels(a, redistest.StartSentinels(t, silence, opts...))
	}
	return inCluster(a, redistest.StartCluster(t, 3, 1, opts...), redistest.Key(t))
}

func (f Figures) check(t *testing.T, notified time.Duration) {
	t.Helper()
	assert.Equal(t, f.Locks, f.Kept, "a replicated lock was lost")
	assert.Equal(t, f.Lost, f.Notified, "a holder was not notified of its loss")
	assert.Equal(t, f.Waiters, f.Served, "a waiter still waits")
	assert.Less(t, slices.Max(f.Pauses), pauseBound)
	assert.Less(t, f.NotifiedAfter, notified)
	assert.Less(t, f.Slowest, servedBound)
	if f.Lost == 0 {
		assert.Zero(t, f.Twice, "two held a lock though none was lost")
	}
}

// Figures are the results for one failure.
type Figures struct {
	Pauses          []time.Duration // longest time in which the workers did not acquire a lock, per kind
	Locks, Kept     int             // replicated locks, and how many of them their holders kept
	Lost, Notified  int             // locks that were not replicated, and how many holders got ErrLost
	NotifiedAfter   time.Duration   // time from the failure to the last ErrLost
	Twice           int             // locks that had two holders, including those of workers
	Overlap         time.Duration   // longest time until a holder learned that another owner had its lock
	Waiters, Served int             // waiters when the master failed, and how many of them acquired the lock
	Slowest         time.Duration   // longest time from the release, or the loss and a new master, to the acquisition
}

func (tr *trial) figures() Figures {
	tr.t.Helper()
	f := Figures{Locks: len(tr.kept), Waiters: len(tr.kept) + len(tr.lost)}
	for _, c := range tr.contenders {
		v := c.Stop()
		f.Pauses = append(f.Pauses, v.Longest)
		f.Twice += v.Twice
		tr.t.Logf("contenders: %d acquired, %d lost, %d twice, longest pause %v, reported %v", v.Taken, v.Lost, v.Twice, v.Longest.Round(time.Millisecond), v.Errors)
	}
	unlocked, taken := tr.kept, tr.lost
	if tr.loses {
		f.Lost = len(tr.lost)
	} else {
		f.Locks = f.Waiters
		unlocked, taken = append(unlocked[:len(unlocked):len(unlocked)], taken...), nil
	}
	there := tr.there()
	for _, p := range unlocked {
		f.served(p, p.free)
		if !p.free.IsZero() {
			f.Kept++
		}
	}
	for _, p := range taken {
		f.served(p, there)
		f.countLoss(p, tr.struck)
	}
	return f
}

func (tr *trial) there() (first time.Time) {
	for _, p := range tr.lost {
		p.mu.Lock()
		if first.IsZero() || !p.got.IsZero() && p.got.Before(first) {
			first = p.got
		}
		p.mu.Unlock()
	}
	return first
}

// served counts p's waiter if it acquired the lock. If known, free is the time when the lock became free.
func (f *Figures) served(p *pair, free time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.got.IsZero() {
		return
	}
	f.Served++
	if !free.IsZero() {
		f.Slowest = max(f.Slowest, p.got.Sub(free))
	}
}

func (f *Figures) countLoss(p *pair, struck time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.notified.IsZero() {
		return
	}
	f.Notified++
	f.NotifiedAfter = max(f.NotifiedAfter, p.notified.Sub(struck))
	if both := p.notified.Sub(p.got); !p.got.IsZero() && both > 0 {
		f.Twice++
		f.Overlap = max(f.Overlap, both)
	}
}

const columns = "| the master | servers | with | nobody acquired for: plain, fair | replicated locks: kept | unreplicated locks: holders notified | after the failure | two holders | for at most | who waited: served | after the lock was free |\n" +
	"|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"

func (f Figures) row(what, servers, adapter string) string {
	notified, after, overlap := "none was lost", "–", "–"
	if f.Lost > 0 {
		notified, after = fmt.Sprintf("%d of %d", f.Notified, f.Lost), seconds(f.NotifiedAfter)
	}
	if f.Overlap > 0 {
		overlap = seconds(f.Overlap)
	}
	pauses := make([]string, len(f.Pauses))
	for i, p := range f.Pauses {
		pauses[i] = seconds(p)
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %d of %d | %s | %s | %d | %s | %d of %d | %s |",
		what, servers, adapter, strings.Join(pauses, ", "), f.Kept, f.Locks, notified, after, f.Twice, overlap, f.Served, f.Waiters, seconds(f.Slowest))
}

func seconds(d time.Duration) string {
	if d < 50*time.Millisecond {
		return "< 0.1 s"
	}
	return fmt.Sprintf("%.1f s", d.Seconds())
}
