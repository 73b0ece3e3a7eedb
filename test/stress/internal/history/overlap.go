package history

import (
	"fmt"
	"slices"
	"time"
)

// Finding is something that should not be.
type Finding struct {
	// Check is which check found it.
	Check string
	// What says what was found, with names and times.
	What string
}

// String is the check and the words.
func (f Finding) String() string { return f.Check + ": " + f.What }

func found(check, format string, args ...any) Finding {
	return Finding{check, fmt.Sprintf(format, args...)}
}

// Overlap is two holds of different owners that were valid at once, not both of readers.
type Overlap struct {
	// First was granted before Second, and Span is when both were valid.
	First, Second *Hold
	Span          Span
	// After is how long after the server was made to forget the lock the overlap
	// ended, counted from the first time; Excused is true if that is what allows it.
	After   Time
	Excused bool
}

// latency is what a renewal may take in addition to its period: a command timeout and a new
// connection.
const latency = 3 * time.Second

// Overlaps returns all of them. Where the server was made to forget, they are
// excused for one renewal period.
func (s *Story) Overlaps() []Overlap {
	var all []Overlap
	for _, key := range sortedKeys(s.ByKey) {
		var open []*Hold
		for _, h := range s.ByKey[key] {
			open = slices.DeleteFunc(open, func(o *Hold) bool { return o.To <= h.From })
			for _, o := range open {
				if o.Owner != h.Owner && h.To > h.From && (!o.Read || !h.Read) {
					all = append(all, s.excuse(Overlap{First: o, Second: h, Span: o.Valid().and(h.Valid())}))
				}
			}
			open = append(open, h)
		}
	}
	return all
}

// excuse looks for the fault that made the server forget one of the holds. That is the first,
// or either where both were asked for at once: the server may have granted them in the other
// order.
func (s *Story) excuse(o Overlap) Overlap {
	if o.excuse(s.Faults, o.First); !o.Excused && o.Second.sent < o.First.From {
		o.excuse(s.Faults, o.Second)
	}
	return o
}

// excuse looks for the fault that made the server forget the hold. It is the first one that
// came when the hold was granted for sure: if that did not end it in time, no later one is the
// reason.
func (o *Overlap) excuse(faults []Record, h *Hold) {
	period := h.Lease
	if h.Renewed {
		period /= 3
	}
	for _, f := range faults {
		if f.Key != "*" && f.Key != h.Key || f.Until <= h.sent || f.T >= o.Span.To {
			continue
		}
		o.After, o.Excused = o.Span.To-f.T, o.Span.To <= f.Until+period+latency
		if f.T > h.From && f.Op != Evicted {
			break
		}
	}
}

// Evicted is the fault that makes the server forget some keys, unknown which.
const Evicted = "evicted"

// String names both holds and the time.
func (o Overlap) String() string {
	return fmt.Sprintf("%s was held by %s (%s, process %s) and %s (%s, process %s) at once for %v, from %v on",
		o.First.Key, o.First.ID, o.First.Owner, o.First.P, o.Second.ID, o.Second.Owner, o.Second.P,
		o.Span.length().Round(time.Microsecond), o.Span.From)
}

// checkOverlaps judges them.
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
