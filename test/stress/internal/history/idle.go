package history

import (
	"cmp"
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
			i := Idle{Key: h.Key, Span: Span{u.Returned, s.until(holds, enough(waits, h), u)}}
			i.Calm = calm(i.Span, excused)
			if i.Calm > longest.Calm {
				longest = i
			}
		}
	}
	return longest
}

// enough are the waiters for whom what a hold has given up is enough.
func enough(waits []*Made, h *Hold) []*Made {
	return slices.DeleteFunc(slices.Clone(waits), func(c *Made) bool { return c.Permits > h.Permits })
}

// outlived reports whether another hold of the owner was valid when h was given up.
func outlived(holds []*Hold, h *Hold, at Time) bool {
	return slices.ContainsFunc(holds, func(o *Hold) bool {
		return o != h && o.Owner == h.Owner && o.From < at && at < o.To
	})
}

// until is when the lock was taken after an unlock, or the last of its waiters had left.
func (s *Story) until(holds []*Hold, waits []*Made, unlock *Made) Time {
	to := Time(0)
	for _, w := range waits {
		if w.T < unlock.T {
			to = max(to, s.left(w))
		}
	}
	for _, h := range holds {
		if h.From > unlock.T {
			to = min(to, h.From)
		}
	}
	return max(to, unlock.Returned)
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
