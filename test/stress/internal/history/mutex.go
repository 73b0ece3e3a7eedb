package history

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// window is how many tenures porcupine looks at together; the last of a window is
// the first of the next.
const window = 24

// ownership is a lock from the first grant of an owner in one role until its last hold ended.
type ownership struct {
	owner        string
	reads        bool
	called, from Time
	freed        Span // it was given up or ended in here
}

// entry is an operation of the model.
type entry struct {
	owner       string
	reads, lock bool
}

// held is the state of the model: the owner that has it to itself, and the readers, each with a
// space behind it, in the order of their names.
type held struct{ owner, readers string }

// model is a mutex that readers may have together, the owner that has it among them.
var model = porcupine.Model{
	Init: func() any { return held{} },
	Step: func(state, input, _ any) (bool, any) {
		h, ok := state.(held)
		e, isEntry := input.(entry)
		if !ok || !isEntry {
			return false, state
		}
		return h.step(e)
	},
}

// step is what an operation does, and whether it can be done.
func (h held) step(e entry) (bool, held) {
	readers := strings.Fields(h.readers)
	reads := slices.Contains(readers, e.owner)
	switch {
	case e.reads && e.lock:
		readers = append(readers, e.owner)
		slices.Sort(readers)
		return !reads && (h.owner == "" || h.owner == e.owner), held{h.owner, strings.Join(readers, " ")}
	case e.reads:
		readers = slices.DeleteFunc(readers, func(r string) bool { return r == e.owner })
		return reads, held{h.owner, strings.Join(readers, " ")}
	case e.lock:
		return h == held{}, held{owner: e.owner}
	}
	return h.owner == e.owner, held{readers: h.readers}
}

// checkMutex asks porcupine whether the tenures of each key are those of a mutex:
// an acquisition took effect between its call and its return, a release between
// its call and its return, or, when its outcome is not known or the hold ended by
// itself, at any time after the hold was last valid. Where the server was made to
// forget, it is not asked.
func (s *Story) checkMutex() (findings []Finding) {
	for _, key := range sortedKeys(s.ByKey) {
		if s.mayForget(key) {
			continue
		}
		all := s.ownerships(key)
		for from := 0; from < len(all); from += window - 1 {
			part := all[from:min(from+window, len(all))]
			if porcupine.CheckOperationsTimeout(model, operations(part), 10*time.Second) == porcupine.Illegal {
				findings = append(findings, found("mutex", "%s: what happened from %v to %v is not what a mutex does",
					key, part[0].called, part[len(part)-1].from))
			}
		}
	}
	return findings
}

// ownerships returns those of a key in the order of their grants.
func (s *Story) ownerships(key string) []*ownership {
	byOwner := map[entry]*ownership{}
	var all []*ownership
	for _, h := range s.ByKey[key] {
		role := entry{owner: h.Owner, reads: h.Read}
		t := byOwner[role]
		if t == nil {
			t = &ownership{owner: h.Owner, reads: h.Read, called: h.Called, from: h.From}
			byOwner[role] = t
			all = append(all, t)
		}
		t.called, t.from = min(t.called, h.Called), min(t.from, h.From)
		// The last to end is the one that counts.
		if f := s.freed(h); f.From >= t.freed.From {
			t.freed = f
		}
	}
	slices.SortFunc(all, func(a, b *ownership) int { return cmp.Compare(a.from, b.from) })
	return all
}

// freed is in which time the lock was free of a hold.
func (s *Story) freed(h *Hold) Span {
	if c := s.Freed[h.ID]; c != nil && h.given == h.To {
		return Span{h.To, c.Returned}
	}
	return Span{h.To, math.MaxInt64}
}

func operations(part []*ownership) []porcupine.Operation {
	var ops []porcupine.Operation
	for i, t := range part {
		ops = append(ops,
			porcupine.Operation{ClientId: i, Input: entry{t.owner, t.reads, true}, Call: int64(t.called), Return: int64(t.from)},
			porcupine.Operation{ClientId: i, Input: entry{t.owner, t.reads, false}, Call: int64(t.freed.From), Return: int64(t.freed.To)})
	}
	return ops
}
