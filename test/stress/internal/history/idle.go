package history

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Idle is a stretch in which a lock was free and had waiters.
type Idle struct {
	// Key is the lock, Span is from the reply to the unlock until the next grant, and
	// Calm the longest part of it that no fault had anything to do with.
	Key  string
	Span Span
	Calm Time
}

// Aftermath is for how long a fault may have to do with what happens on a lock.
type Aftermath func(fault Record, key string) time.Duration

// LongestIdle returns the longest stretch, by its calm part, in which a lock that had been
// unlocked stayed free although it had waiters.
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

// longestIdle is LongestIdle of one lock, or semaphore: its holds, who waits for it, and what
// faults excuse.
func (s *Story) longestIdle(holds []*Hold, waits []*Made, excused []Span) (longest Idle) {
	for _, h := range holds {
		// An inner unlock frees nothing; neither is one that others outlive.
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

// atLeastOne is a number of permits, or a lock as one.
func atLeastOne(permits int64) int64 { return max(permits, 1) }

// outlived reports whether another hold of the owner was valid when h was given up.
func outlived(holds []*Hold, h *Hold, at Time) bool {
	return slices.ContainsFunc(holds, func(o *Hold) bool {
		return o != h && o.Owner == h.Owner && o.From < at && at < o.To
	})
}

// until is how long after an unlock, which has given back so many permits, there was a waiter that
// could have had some of them, or the lock.
func (s *Story) until(holds []*Hold, waits []*Made, unlock *Made, freed int64) Time {
	to := unlock.Returned
	for _, w := range waits {
		if spare := freed - atLeastOne(w.Permits); w.T < unlock.T && spare >= 0 {
			to = max(to, min(s.left(w), takenFrom(holds, unlock.T, spare)))
		}
	}
	return to
}

// takenFrom is when the holds granted after a moment had more permits together than so many.
func takenFrom(holds []*Hold, at Time, spare int64) Time {
	first, _ := slices.BinarySearchFunc(holds, at, func(h *Hold, at Time) int { return cmp.Compare(h.From, at+1) })
	for _, h := range holds[first:] {
		if spare -= atLeastOne(h.Permits); spare < 0 {
			return h.From
		}
	}
	return math.MaxInt64
}

// left is when a call was over: it returned, or its process was killed.
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

// excuses are the stretches that faults may have to do with.
func (s *Story) excuses(key string, after Aftermath) []Span {
	var spans []Span
	for _, f := range s.Faults {
		spans = append(spans, Span{f.T, f.Until + after(f, key)})
	}
	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	return spans
}

// calm is the longest part of a span that is in none of the others, which are in
// order.
func calm(in Span, others []Span) (longest Time) {
	from := in.From
	for _, o := range others {
		longest = max(longest, Span{from, min(o.From, in.To)}.length())
		from = max(from, o.To)
	}
	return max(longest, Span{from, in.To}.length())
}
