package history

import (
	"cmp"
	"slices"
	"time"
)

// checkPermits finds where holds had more permits of a semaphore at once than were set.
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

// mayForget reports whether the server was made to forget a key.
func (s *Story) mayForget(key string) bool {
	return slices.ContainsFunc(s.Faults, func(f Record) bool { return f.Key == "*" || f.Key == key })
}

// crowded finds where the marks of a semaphore, in whose order all are, show more permits at once
// than were set.
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

// checkStocks compares what the server had of a semaphore with what was set, and with the holds
// that were valid all the while.
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

// outAllThrough is how many permits were out from the beginning of a span to its end.
func (s *Story) outAllThrough(key string, in Span) (out int64) {
	holds := s.BySemaphore[key]
	// None that was granted later counts.
	n, _ := slices.BinarySearchFunc(holds, in.From, func(h *Hold, at Time) int { return cmp.Compare(h.From, at+time.Nanosecond) })
	for _, h := range holds[:n] {
		if h.To >= in.To {
			out += h.Permits
		}
	}
	return out
}
