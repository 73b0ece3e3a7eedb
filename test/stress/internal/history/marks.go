package history

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// place is a place in a stream.
type place struct{ ms, n int64 }

// parsePlace returns the zero place for a text that is none.
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

// stay is an owner's time inside in one role, from its first mark to its last.
type stay struct {
	hold        *Hold // the first to leave one
	first, last place
	end         Time
}

// stays returns those of each key, in the order of their first marks.
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

// checkMarks finds marks of one owner between those of another, which no clock is
// needed for, unless the server was made to forget.
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
