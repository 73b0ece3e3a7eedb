package history

import (
	"cmp"
	"slices"
	"time"
)

// checkCalls judges that every call of a process that lives returned, in its time and the
// slack. The time that the process stood still is not counted.
func (s *Story) checkCalls(slack time.Duration) (findings []Finding) {
	for _, id := range sortedKeys(s.Calls) {
		c := s.Calls[id]
		if c.Returned == 0 {
			if _, dead := s.Kills[c.P]; !dead {
				findings = append(findings, found("calls", "%s of %s (%s) never returned", c.Op, c.Key, c.ID))
			}
			continue
		}
		took := c.Returned - c.T - s.stood(c.P, Span{c.T, c.Returned})
		if took > c.Wait+slack {
			findings = append(findings, found("calls", "%s of %s (%s) took %v, its bound is %v",
				c.Op, c.Key, c.ID, took.Round(time.Millisecond), c.Wait))
		}
	}
	return findings
}

// stood is for how long a process stood still in a span. Its stops may overlap: one was made,
// and the process itself noticed it.
func (s *Story) stood(p string, in Span) (sum Time) {
	stops := slices.SortedFunc(slices.Values(s.Stops[p]), func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for _, stop := range stops {
		part := stop.and(in)
		sum += part.length()
		in.From = max(in.From, part.To)
	}
	return sum
}

// checkEarly checks that no hold of a lock that the server remembered was lost before its
// deadline had come.
func (s *Story) checkEarly() (findings []Finding) {
	for _, id := range sortedKeys(s.Holds) {
		h := s.Holds[id]
		if h.Early > 0 && h.Cause == "lost" && !s.forgotten(h, h.over) {
			findings = append(findings, found("early", "%s of %s (%s) was lost %v before its deadline",
				h.ID, h.Key, h.Owner, h.Early.Round(time.Millisecond)))
		}
	}
	for _, id := range sortedKeys(s.Calls) {
		c := s.Calls[id]
		h := s.Holds[c.Hold]
		if !frees(c.Op) || c.Err != "lost" || h == nil {
			continue
		}
		if c.Returned < h.deadline && !s.forgotten(h, c.Returned) {
			findings = append(findings, found("early", "%s of %s (%s) was lost as it was unlocked, %v before its deadline",
				h.ID, h.Key, h.Owner, (h.deadline-c.Returned).Round(time.Millisecond)))
		}
	}
	return findings
}

// forgotten reports whether the server was made to forget the hold before at.
func (s *Story) forgotten(h *Hold, at Time) bool {
	for _, f := range s.Faults {
		if (f.Key == "*" || f.Key == h.Key) && f.Until > h.Called && f.T < at {
			return true
		}
	}
	return false
}

// checkReentries checks that a proof is refused once the server has forgotten what it
// proves, and that a caller that is inside by a proof was inside.
func (s *Story) checkReentries() (findings []Finding) {
	for _, id := range sortedKeys(s.Holds) {
		h := s.Holds[id]
		outer := s.Holds[h.Outer]
		if outer == nil {
			continue
		}
		for _, f := range s.Faults {
			if (f.Key == "*" || f.Key == h.Key) && outer.From < f.T && h.Called > f.Until {
				findings = append(findings, found("re-entry",
					"%s of %s (%s) entered by the proof of %s, which the server had forgotten %v before",
					h.ID, h.Key, h.Owner, outer.ID, h.Called-f.Until))
				break
			}
		}
		if h.Owner != outer.Owner {
			findings = append(findings, found("re-entry", "%s has owner %s, the hold it re-entered %s", h.ID, h.Owner, outer.Owner))
		}
	}
	return findings
}
