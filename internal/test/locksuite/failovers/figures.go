package failovers

import (
	"fmt"
	"strings"
	"time"
)

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
