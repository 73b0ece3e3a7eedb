//go:build linux

package history

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checkPermits finds times at which more permits were held than the semaphore has. It assumes that each hold had its
// permits for the shortest time that its calls and samples allow, so each violation that it finds is real.
func (s *Story) checkPermits() (findings []Finding) {
	for _, key := range sortedKeys(s.BySemaphore) {
		if s.mayForget(key) {
			continue
		}
		var out int64
		var inside []*Hold
		for _, h := range s.BySemaphore[key] {
			if h.To <= h.From {
				continue
			}
			inside = slices.DeleteFunc(inside, func(o *Hold) bool {
				over := o.To <= h.From
				if over {
					out -= o.Permits
				}
				return over
			})
			inside, out = append(inside, h), out+h.Permits
			if out > h.Most {
				findings = append(findings, found("permits", "%s: %d permits of %d were out at %v, when %s (%s, process %s) had its %d",
					key, out, h.Most, h.From, h.ID, h.Owner, h.P, h.Permits))
			}
		}
	}
	return findings
}

func (s *Story) mayForget(key string) bool {
	return slices.ContainsFunc(s.Faults, func(f Record) bool { return f.Key == "*" || f.Key == key })
}

func (s *Story) crowded(key string, all []*stay) (findings []Finding) {
	if s.mayForget(key) {
		return nil
	}
	var out int64
	var inside []*stay
	for _, b := range all {
		inside = slices.DeleteFunc(inside, func(a *stay) bool {
			left := a.last.compare(b.first) <= 0
			if left {
				out -= a.hold.Permits
			}
			return left
		})
		inside, out = append(inside, b), out+b.hold.Permits
		if out > b.hold.Most {
			findings = append(findings, found("marks", "%s: %d permits of %d were out at mark %v of %s",
				key, out, b.hold.Most, b.first, b.hold.ID))
		}
	}
	return findings
}

// checkStocks checks that available and acquired permits never add up to more than the semaphore has, or to fewer
// unless some may have been lost. It also checks that the holds that were valid throughout the query and the available
// permits did not together exceed the semaphore's size.
func (s *Story) checkStocks() (findings []Finding) {
	for _, q := range s.Stocks {
		if s.mayForget(q.Key) {
			continue
		}
		has := q.Available + q.Count
		if has > q.Most || q.Exact && has < q.Most {
			findings = append(findings, found("stock", "%s: the server had %d permits available and %d taken at %v, of %d",
				q.Key, q.Available, q.Count, q.T, q.Most))
		}
		if out := s.outAllThrough(q.Key, Span{q.T, q.Until}); out+q.Available > q.Most {
			findings = append(findings, found("stock", "%s: the server had %d permits available at %v while %d were out, of %d",
				q.Key, q.Available, q.T, out, q.Most))
		}
	}
	return findings
}

func (s *Story) outAllThrough(key string, in Span) (out int64) {
	holds := s.BySemaphore[key]
	n, _ := slices.BinarySearchFunc(holds, in.From, func(h *Hold, at Time) int { return cmp.Compare(h.From, at+time.Nanosecond) })
	for _, h := range holds[:n] {
		if h.To >= in.To {
			out += h.Permits
		}
	}
	return out
}

type place struct{ ms, n int64 }

func parsePlace(text string) place {
	ms, n, _ := strings.Cut(text, "-")
	var p place
	var err error
	if p.ms, err = strconv.ParseInt(ms, 10, 64); err != nil {
		return place{}
	}
	if p.n, err = strconv.ParseInt(n, 10, 64); err != nil {
		return place{}
	}
	return p
}

func (p place) compare(q place) int { return cmp.Or(cmp.Compare(p.ms, q.ms), cmp.Compare(p.n, q.n)) }

func (p place) String() string { return fmt.Sprintf("%d-%d", p.ms, p.n) }

// stay is the time from an owner's first mark on a key to its last, as a reader or as a writer.
type stay struct {
	hold        *Hold
	first, last place
	end         Time
}

func (s *Story) stays() map[string][]*stay {
	byOwner := map[string]*stay{}
	byKey := map[string][]*stay{}
	for _, m := range s.Marks {
		h, at := s.Holds[m.Hold], parsePlace(m.Entry)
		if h == nil || at == (place{}) {
			continue
		}
		id := fmt.Sprint(h.Key, " ", h.Owner, " ", h.Read)
		o := byOwner[id]
		if o == nil {
			o = &stay{hold: h, first: at, last: at}
			byOwner[id] = o
			byKey[h.Key] = append(byKey[h.Key], o)
		}
		if at.compare(o.first) < 0 {
			o.first = at
		}
		if at.compare(o.last) > 0 {
			o.last = at
		}
		o.end = max(o.end, m.T)
	}
	for _, all := range byKey {
		slices.SortFunc(all, func(a, b *stay) int { return a.first.compare(b.first) })
	}
	return byKey
}

// checkMarks finds marks of different owners that are interleaved, unless the server lost data. It does not depend on
// clocks.
func (s *Story) checkMarks() (findings []Finding) {
	byKey := s.stays()
	for _, key := range sortedKeys(byKey) {
		if len(s.BySemaphore[key]) > 0 {
			findings = append(findings, s.crowded(key, byKey[key])...)
			continue
		}
		var inside []*stay
		for _, b := range byKey[key] {
			inside = slices.DeleteFunc(inside, func(a *stay) bool { return a.last.compare(b.first) <= 0 })
			for _, a := range inside {
				together := a.hold.Owner == b.hold.Owner || a.hold.Read && b.hold.Read
				if !together && !s.marksExcused(a, b) {
					findings = append(findings, found("marks", "%s: %s entered with mark %v before %s left with mark %v",
						key, b.hold.ID, b.first, a.hold.ID, a.last))
				}
			}
			inside = append(inside, b)
		}
	}
	return findings
}

func (s *Story) marksExcused(a, b *stay) bool {
	return s.excuse(Overlap{First: a.hold, Second: b.hold, Span: Span{b.hold.From, min(a.end, b.end)}}).Excused
}

// Idle is an interval in which a lock was free although it had waiters.
type Idle struct {
	// Span begins when the unlock returned, and ends with the next grant. Calm is the longest part of it that was not
	// affected by faults.
	Key  string
	Span Span
	Calm Time
}

// Aftermath returns how long a fault may affect a lock.
type Aftermath func(fault Record, key string) time.Duration

// LongestIdle returns the Idle with the highest Calm.
func (s *Story) LongestIdle(after Aftermath) (longest Idle) {
	waits := map[string][]*Made{}
	for _, c := range s.Calls {
		if (c.Op == "lock" || c.Op == "acquire") && c.Hold == "" {
			waits[c.Key] = append(waits[c.Key], c)
		}
	}
	for _, byName := range []map[string][]*Hold{s.ByKey, s.BySemaphore} {
		for _, key := range sortedKeys(byName) {
			if i := s.longestIdle(byName[key], waits[key], s.excuses(key, after)); i.Calm > longest.Calm {
				longest = i
			}
		}
	}
	return longest
}

func (s *Story) longestIdle(holds []*Hold, waits []*Made, excused []Span) (longest Idle) {
	for _, h := range holds {
		// The lock becomes free only with the last hold of its owner.
		if u := s.Freed[h.ID]; u != nil && h.Outer == "" && !outlived(holds, h, u.T) {
			i := Idle{Key: h.Key, Span: Span{u.Returned, s.until(holds, waits, u, atLeastOne(h.Permits))}}
			i.Calm = calm(i.Span, excused)
			if i.Calm > longest.Calm {
				longest = i
			}
		}
	}
	return longest
}

func atLeastOne(permits int64) int64 { return max(permits, 1) }

func outlived(holds []*Hold, h *Hold, at Time) bool {
	return slices.ContainsFunc(holds, func(o *Hold) bool {
		return o != h && o.Owner == h.Owner && o.From < at && at < o.To
	})
}

func (s *Story) until(holds []*Hold, waits []*Made, unlock *Made, freed int64) Time {
	to := unlock.Returned
	for _, w := range waits {
		if spare := freed - atLeastOne(w.Permits); w.T < unlock.T && spare >= 0 {
			to = max(to, min(s.left(w), takenFrom(holds, unlock.T, spare)))
		}
	}
	return to
}

func takenFrom(holds []*Hold, at Time, spare int64) Time {
	first, _ := slices.BinarySearchFunc(holds, at, func(h *Hold, at Time) int { return cmp.Compare(h.From, at+1) })
	for _, h := range holds[first:] {
		if spare -= atLeastOne(h.Permits); spare < 0 {
			return h.From
		}
	}
	return math.MaxInt64
}

func (s *Story) left(c *Made) Time {
	killed, dead := s.Kills[c.P]
	switch {
	case c.Returned != 0:
		return c.Returned
	case dead:
		return killed
	}
	return s.Ended
}

func (s *Story) excuses(key string, after Aftermath) []Span {
	var spans []Span
	for _, f := range s.Faults {
		spans = append(spans, Span{f.T, f.Until + after(f, key)})
	}
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	return spans
}

// calm returns the length of the longest part of a span that the others, which are sorted, do not cover.
func calm(in Span, others []Span) (longest Time) {
	from := in.From
	for _, o := range others {
		longest = max(longest, Span{from, min(o.From, in.To)}.length())
		from = max(from, o.To)
	}
	return max(longest, Span{from, in.To}.length())
}
