//go:build linux

package history

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Finding is a violation that a check found.
type Finding struct {
	Check string
	What  string
}

// String returns the check and the finding.
func (f Finding) String() string { return f.Check + ": " + f.What }

func found(check, format string, args ...any) Finding {
	return Finding{check, fmt.Sprintf(format, args...)}
}

// Overlap is a pair of conflicting holds that were valid at the same time.
type Overlap struct {
	// First was granted before Second. Both were valid in Span.
	First, Second *Hold
	Span          Span
	// After is the time between the fault that caused the server to lose the lock and the end of the overlap.
	After   Time
	Excused bool
}

// latency is the longest time for which a renewal may be late: a command timeout plus a reconnection.
const latency = 3 * time.Second

// Overlaps returns all overlaps. An overlap that ends within one renewal period of a data loss is excused. If other
// faults may keep the holder from noticing the loss, it has until they end, but not longer than its lease.
func (s *Story) Overlaps() []Overlap {
	var all []Overlap
	for _, key := range sortedKeys(s.ByKey) {
		var open []*Hold
		for _, h := range s.ByKey[key] {
			open = slices.DeleteFunc(open, func(o *Hold) bool { return o.To <= h.From })
			for _, o := range open {
				if h.To > h.From && exclude(o, h) {
					all = append(all, s.excuse(Overlap{First: o, Second: h, Span: o.Valid().and(h.Valid())}))
				}
			}
			open = append(open, h)
		}
	}
	return all
}

// exclude reports whether two holds conflict. An owner's own holds conflict only if it acquired the write lock while it
// held the read lock.
func exclude(first, second *Hold) bool {
	if first.Owner == second.Owner {
		return first.Read && !second.Read && second.Outer == ""
	}
	return !first.Read || !second.Read
}

// excuse looks for the fault that made the server lose the first hold. If both holds were requested concurrently, it
// also tries the second hold, because the server may have granted them in the opposite order.
func (s *Story) excuse(o Overlap) Overlap {
	if o.excuse(s.Faults, o.First); !o.Excused && o.Second.sent < o.First.From {
		o.excuse(s.Faults, o.Second)
	}
	return o
}

// excuse stops at the first fault that began while the hold was valid: if the hold did not end soon enough after that
// fault, a later one is not the reason for the overlap. It does not stop at evictions, which may not have affected the
// key.
func (o *Overlap) excuse(faults []Record, h *Hold) {
	period := h.Lease
	if h.Renewed {
		period /= 3
	}
	for _, f := range faults {
		if f.Key != "*" && f.Key != h.Key || f.Until <= h.sent || f.T >= o.Span.To {
			continue
		}
		end := f.Until + period + latency
		for _, g := range faults {
			if g.Key == "" && g.T < end {
				end = max(end, min(g.Until+latency, f.Until+h.Lease))
			}
		}
		o.After, o.Excused = o.Span.To-f.T, o.Span.To <= end
		if f.T > h.From && f.Op != Evicted {
			break
		}
	}
}

// Evicted is the Op of a fault in which the server loses an unknown set of keys.
const Evicted = "evicted"

// String describes the overlap.
func (o Overlap) String() string {
	return fmt.Sprintf("%s was held by %s (%s, process %s) and %s (%s, process %s) concurrently for %v, from %v on",
		o.First.Key, o.First.ID, o.First.Owner, o.First.P, o.Second.ID, o.Second.Owner, o.Second.P,
		o.Span.length().Round(time.Microsecond), o.Span.From)
}

func (s *Story) checkOverlaps() (findings []Finding) {
	for _, o := range s.Overlaps() {
		if !o.Excused {
			findings = append(findings, found("overlap", "%v", o))
		}
	}
	return findings
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// grain allows for the resolution of the server's clock and for inexact samples on a busy machine.
const grain = 20 * time.Millisecond

// checkAudits checks that each hold ends at least its loss margin before the key can expire, that the owner's count on
// the server matches its depth, and that the owner is gone after its last unlock has succeeded.
func (s *Story) checkAudits() (findings []Finding) {
	for _, a := range s.Audits {
		h := s.Holds[a.Hold]
		if h == nil || s.forgotten(h, a.T) {
			continue
		}
		switch {
		case a.Kind == Absent && a.Count > 0:
			findings = append(findings, found("count", "%s: the server had %s %d times after its last unlock had succeeded",
				h.Key, h.Owner, a.Count))
		case a.Kind == Absent:
		case a.Count == 0:
			if h.To > a.T {
				findings = append(findings, found("gone", "%s: the server no longer had %s, %v before %s ended",
					h.Key, h.Owner, h.To-a.T, h.ID))
			}
		case a.Count < a.Depth, a.Exact && a.Count != a.Depth:
			findings = append(findings, found("count", "%s: the server had %s %d times, which was inside %d times",
				h.Key, h.Owner, a.Count, a.Depth))
		case a.TTL >= 0 && a.Until+h.Margin > a.T+a.TTL+grain:
			findings = append(findings, found("margin", "%s: the key of %s could expire %v after the end of %s, its margin is %v",
				h.Key, h.Owner, (a.T+a.TTL-a.Until).Round(time.Millisecond), h.ID, h.Margin))
		}
	}
	return findings
}

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

func (s *Story) stood(p string, in Span) (sum Time) {
	stops := slices.SortedFunc(slices.Values(s.Stops[p]), func(a, b Span) int { return cmp.Compare(a.From, b.From) })
	for _, stop := range stops {
		part := stop.and(in)
		sum += part.length()
		in.From = max(in.From, part.To)
	}
	return sum
}

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
			findings = append(findings, found("early", "%s of %s (%s) was lost before its unlock, %v before its deadline",
				h.ID, h.Key, h.Owner, (h.deadline-c.Returned).Round(time.Millisecond)))
		}
	}
	return findings
}

func (s *Story) forgotten(h *Hold, at Time) bool {
	for _, f := range s.Faults {
		if (f.Key == "*" || f.Key == h.Key) && f.Until > h.Called && f.T < at {
			return true
		}
	}
	return false
}

// checkReentries checks that a proof was rejected if the server had lost its hold, and that nested holds have the same
// owner.
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
					"%s of %s (%s) entered with the proof of %s, which the server had lost %v before",
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

// checkTokens checks that a call that began after another grant got a higher token than that grant, unless the server
// lost data in between.
func (s *Story) checkTokens() (findings []Finding) {
	for _, key := range sortedKeys(s.ByKey) {
		granted := slices.DeleteFunc(slices.Clone(s.ByKey[key]), func(h *Hold) bool { return h.Token == 0 })
		called := slices.Clone(granted)
		slices.SortStableFunc(called, func(a, b *Hold) int { return cmp.Compare(a.Called, b.Called) })
		var last *Hold
		i := 0
		for _, h := range called {
			for ; i < len(granted) && granted[i].From < h.Called; i++ {
				if last == nil || s.forgot(key, last.Called, granted[i].From) || granted[i].Token > last.Token {
					last = granted[i]
				}
			}
			if last != nil && h.Token <= last.Token && !s.forgot(key, last.Called, h.From) {
				findings = append(findings, found("tokens", "%s: %s has token %d, and %s had %d before", key, h.ID, h.Token, last.ID, last.Token))
			}
		}
	}
	return findings
}

func (s *Story) forgot(key string, from, to Time) bool {
	return slices.ContainsFunc(s.Faults, func(f Record) bool {
		return (f.Key == "*" || f.Key == key) && f.T <= to && f.Until >= from
	})
}
