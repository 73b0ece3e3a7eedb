package inspect

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/protocol"
)

const (
	mostCircles = 16
	triedOwners = 256 // owners whose circles are searched for
	// confirmFor is longer than two announcements of a wait are apart.
	confirmFor = 8 * time.Second
	// queuedFor is the time between two looks that find the same places in queues.
	queuedFor = 5 * time.Second
	// CirclePlaces limits the places of a queue that are part of circles.
	CirclePlaces = 32
)

// Inner is a wait inside the holds of an owner, which its client announces. See engine.Nest.
type Inner struct {
	Lock  string
	Reads bool
	// ID is the same as long as the wait lasts. Written counts its announcements.
	ID      string
	Written int64
}

func innerOf(text string) *Inner {
	parts := strings.SplitN(text, " ", 5)                // as in engine.NestedFormat
	if len(parts) < 5 || len(text) >= engine.MaxNested { // perhaps cut
		return nil
	}
	written, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || written < 1 || parts[4] == "" {
		return nil
	}
	return &Inner{Lock: parts[4], Reads: parts[3] == protocol.ModeRead, ID: parts[0] + " " + parts[1], Written: written}
}

// Step is a wait of a circle: Waiter cannot release its locks before it gets Lock, which Holder holds.
type Step struct {
	Lock        string `json:"lock"`
	LockBase64  string `json:"lock_base64,omitempty"`
	Waiter      string `json:"waiter"`
	WaiterLabel string `json:"waiter_label,omitempty"`
	Holder      string `json:"holder"`
	HolderLabel string `json:"holder_label,omitempty"`

	inner *Inner // nil for a place in a queue
}

// Queued reports whether Waiter has a place in the queue of Lock.
func (s *Step) Queued() bool { return s.inner == nil }

// Circle is a circle of waits: the holder of each step is the waiter of the next one, and the holder of the last step
// is the waiter of the first one.
type Circle []Step

// Has reports whether a lock is part of the circle.
func (c Circle) Has(lock string) bool {
	return slices.ContainsFunc(c, func(s Step) bool { return s.Lock == lock })
}

func (c Circle) key() string {
	parts := make([]string, len(c))
	for i, s := range c {
		parts[i] = strings.Join([]string{s.Lock, s.Waiter, s.Holder}, "\x00")
		if s.inner != nil {
			parts[i] += "\x00" + s.inner.ID
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "\x00\x00")
}

// bareOwner returns an owner without the suffix of a writer.
func bareOwner(owner string) string {
	bare, _ := protocol.WriterOf(owner)
	return bare
}

// Contended reports whether the lock may be part of a circle.
func (l *Lock) Contended() bool { return len(l.Holders) > 0 && (l.Queue > 0 || l.Waiting > 0) }

// blockers returns the owners that must release l before a wait for it ends.
func (l *Lock) blockers(reads bool) (holders []Holder) {
	for _, h := range l.Holders {
		if h.IsOver() || h.unsure || reads && h.Mode != protocol.ModeWrite {
			continue
		}
		holders = append(holders, h)
	}
	return holders
}

type edges map[string][]Step // by the bare owner of the waiter, which holds a lock

func edgesOf(locks []*Lock, dead func(lock, owner string) bool) edges {
	all := edges{}
	byName, holds := make(map[string]*Lock, len(locks)), map[string]bool{}
	for _, l := range locks {
		byName[l.Name] = l
		for _, h := range l.Holders {
			holds[bareOwner(h.Owner)] = true
		}
	}
	for _, l := range locks {
		all.addQueue(l, func(owner string) bool { return !holds[owner] || dead(l.Name, owner) })
		for _, h := range l.Holders {
			if h.Inner != nil && byName[h.Inner.Lock] != nil {
				all.add(byName[h.Inner.Lock], h.Owner, h.Label, h.Inner)
			}
		}
	}
	return all
}

func (all edges) addQueue(l *Lock, omit func(owner string) bool) {
	if l.Kind == ReadWrite { // the queue is that of a fair lock of this name
		return
	}
	for i, owner := range l.Places[:min(len(l.Places), CirclePlaces)] {
		if !isThread(owner) || omit(owner) {
			continue
		}
		label := ""
		if i < len(l.PlaceLabels) {
			label = l.PlaceLabels[i]
		}
		all.add(l, owner, label, nil)
	}
}

func (all edges) add(on *Lock, waiter, label string, in *Inner) {
	from := bareOwner(waiter)
	for _, h := range on.blockers(in != nil && in.Reads) {
		if in != nil || bareOwner(h.Owner) != from {
			all[from] = append(all[from], Step{on.Name, Base64(on.Name), from, label, h.Owner, h.Label, in})
		}
	}
}

// isThread reports whether an owner is a thread, which releases nothing while it waits. Each acquisition of a Redlatch
// client is another owner.
func isThread(text string) bool {
	owner, err := codec.ParseOwner(text)
	return err == nil && !protocol.IsRedlatch(owner)
}

// FindCircles returns the shortest circle of each waiter, each circle once, omitting dead waiters. Locks that were read
// at several times may seem to form circles: see Confirmation.
func FindCircles(locks []*Lock, dead func(lock, owner string) bool) (found []Circle) {
	all := edgesOf(locks, dead)
	all.prune()
	names := make([]string, 0, len(all))
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	part := map[string]bool{}
	for _, name := range names[:min(len(names), triedOwners)] {
		if len(found) == mostCircles || part[name] {
			continue
		}
		c := all.shortest(name)
		for _, s := range c {
			part[s.Waiter] = true
		}
		if len(c) > 0 {
			found = append(found, c)
		}
	}
	return found
}

// prune repeatedly drops waiters none of whose holders waits.
func (all edges) prune() {
	left := map[string]int{}        // number of steps to other waiters
	behind := map[string][]string{} // the waiters for each waiter
	var ends []string
	for from, steps := range all {
		for _, s := range steps {
			if to := bareOwner(s.Holder); all[to] != nil {
				left[from]++
				behind[to] = append(behind[to], from)
			}
		}
		if left[from] == 0 {
			ends = append(ends, from)
		}
	}
	for ; len(ends) > 0; ends = ends[1:] {
		delete(all, ends[0])
		for _, from := range behind[ends[0]] {
			if left[from]--; left[from] == 0 {
				ends = append(ends, from)
			}
		}
	}
}

// shortest returns the shortest circle of an owner, or nil.
func (all edges) shortest(name string) (c Circle) {
	came := map[string]Step{}
	for next := []string{name}; len(next) > 0; next = next[1:] {
		for _, s := range all[next[0]] {
			to := bareOwner(s.Holder)
			if _, known := came[to]; known {
				continue
			}
			came[to] = s
			next = append(next, to)
		}
	}
	if _, is := came[name]; !is {
		return nil
	}
	for to := name; len(c) == 0 || to != name; to = c[len(c)-1].Waiter {
		c = append(c, came[to])
	}
	slices.Reverse(c)
	return c
}

// Confirmation confirms circles that CircleReader.Again has found. Locks are not read at one moment, and an announced
// wait may be over, so a circle is only certain if a later look finds the same owners, every announcement was renewed
// after the first look, and places in queues were also found queuedFor earlier.
type Confirmation struct{ first map[string]firstLook }

type firstLook struct {
	circle Circle
	at     time.Time
}

// Confirm returns the certain circles. If pending is true, another look may confirm more.
func (k *Confirmation) Confirm(found []Circle) (certain []Circle, pending bool) {
	before := k.first
	k.first = make(map[string]firstLook, len(found))
	for _, c := range found {
		key := c.key()
		first, seen := before[key]
		if !seen {
			first = firstLook{c, time.Now()}
		}
		k.first[key] = first
		old := time.Since(first.at) >= queuedFor || !slices.ContainsFunc(c, func(s Step) bool { return s.Queued() })
		if seen && old && c.renewed(first.circle) {
			certain = append(certain, c)
		} else {
			pending = true
		}
	}
	return certain, pending
}

// renewed reports whether each announcement is newer than in first, which has the same key.
func (c Circle) renewed(first Circle) bool {
	return !slices.ContainsFunc(c, func(s Step) bool {
		return s.inner != nil && slices.ContainsFunc(first, func(f Step) bool {
			return f.inner != nil && f.Waiter == s.Waiter && f.inner.ID == s.inner.ID && f.inner.Written >= s.inner.Written
		})
	})
}
