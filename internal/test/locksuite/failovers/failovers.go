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
	// downAfter is how long Sentinels wait for a master that is silent, measuredDownAfter when the
	// table is made: on a machine that stands still a moment no master is silent for long.
	downAfter, measuredDownAfter = 3 * time.Second, time.Second
	// pauseBound, toldBound and servedBound are the limits of the figures, far above what
	// they are on an idle machine. Holders have to get ErrLost before their next renewal
	// would find the loss. A node of a cluster that stands still is detected only by calls
	// to it: waiters of a fair lock call it after their poll cap, ten seconds.
	pauseBound, lossBound, servedBound = 20 * time.Second, 12 * time.Second, 5 * time.Second
)

// Run tries each failure in a cluster and with Sentinels, and checks that every holder gets
// ErrLost, and that every waiter gets its lock, on Redis and on Valkey in turn. With
// REDLATCH_FAILOVER=full it does so on both, with five times as many locks and one after
// the other, and logs the table of docs/topologies.md; then leases are the default, else
// twice as long, so that a holder that learns of a loss from its next renewal is late.
func Run(t *testing.T, a Adapter) {
	t.Helper()
	full := os.Getenv("REDLATCH_FAILOVER") == "full"
	each, silence := size{50, 30 * time.Second}, measuredDownAfter
	if !full {
		t.Parallel()
		each, silence = size{10, 60 * time.Second}, downAfter
	}
	var rows []string // of a full run, whose trials come one after the other
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

// lossBoundOf bounds the time until the last holder gets ErrLost.
func (f failure) lossBoundOf(deployment string, s size) time.Duration {
	if f.silent && deployment == "cluster" {
		return lossBound + s.lease/3 // its renewal finds out
	}
	return lossBound
}

// start starts servers of a kind, for one failure. Sentinels wait so long for a silent master.
func (a Adapter) start(t *testing.T, deployment, servers string, silence time.Duration) deployment {
	t.Helper()
	opts := []redistest.Option{redistest.WithArgs("--enable-debug-command", "local")} // for cutOff
	if servers == "Valkey" {
		opts = append(opts, redistest.WithBinary(redistest.ValkeyBinary(t)))
	}
	if deployment == "Sentinel" {
		return withSentinels(a, redistest.StartSentinels(t, silence, opts...))
	}
	return inCluster(a, redistest.StartCluster(t, 3, 1, opts...), redistest.Key(t))
}

// check checks what must be so whatever has failed, with holders informed within a time.
func (f Figures) check(t *testing.T, notified time.Duration) {
	t.Helper()
	assert.Equal(t, f.Locks, f.Kept, "a lock that replicas had was lost")
	assert.Equal(t, f.Lost, f.Notified, "the holder of a lock that was lost was not notified")
	assert.Equal(t, f.Waiters, f.Served, "a waiter still waits")
	assert.Less(t, slices.Max(f.Pauses), pauseBound)
	assert.Less(t, f.NotifiedAfter, notified)
	assert.Less(t, f.Slowest, servedBound)
	if f.Lost == 0 {
		assert.Zero(t, f.Twice, "two had a lock at once though none was lost")
	}
}

// Figures are what came of a failure.
type Figures struct {
	// Pauses are the longest times without an acquisition of the workers' locks: that of
	// each of locksuite.Kinds.
	Pauses []time.Duration
	// Locks is how many the replicas had, and Kept how many of their holders have kept them.
	Locks, Kept int
	// Lost is how many locks no replica had that took over, Told how many of their holders
	// got ErrLost, and ToldAfter how long after the failure the last one did.
	Lost, Notified int
	NotifiedAfter  time.Duration
	// Twice is how many locks had two holders at once, those of the workers included, and
	// Overlap is for how long, at most, a holder did not know that another owner had its
	// lock.
	Twice   int
	Overlap time.Duration
	// Waiters is how many waited for a lock when the master failed, Served how many have got
	// it, and Slowest how long after it was free: unlocked, or lost and a master there.
	Waiters, Served int
	Slowest         time.Duration
}

// figures sums up. It stops the contenders.
func (tr *trial) figures() Figures {
	tr.t.Helper()
	f := Figures{Locks: len(tr.kept), Waiters: len(tr.kept) + len(tr.lost)}
	for _, c := range tr.contenders {
		v := c.Stop()
		f.Pauses = append(f.Pauses, v.Longest)
		f.Twice += v.Twice
		tr.t.Logf("contenders: %d taken, %d lost, %d twice, longest pause %v, reported %v", v.Taken, v.Lost, v.Twice, round(v.Longest), v.Errors)
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

// there returns when the new master was first seen to grant a lock that was lost.
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

// served counts the waiter of a lock that was free from a moment on, the zero time if that
// is not known.
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

// countLoss counts the holder of a lock that was lost when the master failed.
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

// columns is the head of the table.
const columns = "| the master | servers | with | nobody acquired for: plain, fair | locks that replicas had: kept | that none had: holders told | after the failure | two at once | for at most | who waited: served | after the lock was free |\n" +
	"|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"

// row is a line of it.
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

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
