package exporter

import (
	"hash/maphash"
	"time"

	"github.com/redlatch/redlatch/internal/tool/listing"
)

// maxHolds is how many holds are remembered: 262,144, in about 20 MiB for two looks.
const maxHolds = 1 << 18

// seen knows since when each hold has been seen. A hold is an owner of a lock: one that was
// released and acquired again between two looks, by the same thread of Redisson, is one hold.
type seen struct {
	seed       maphash.Seed
	last, next map[uint64]time.Time
	looked     bool // before: holds of the first look began at an unknown time
}

func newSeen() *seen { return &seen{seed: maphash.MakeSeed(), next: map[uint64]time.Time{}} }

// hold notes a hold, and returns since when it has been seen and whether it is new. It returns
// false when there are too many to remember.
func (s *seen) hold(l *listing.Lock, owner string, now time.Time) (since time.Time, isNew, ok bool) {
	var h maphash.Hash
	h.SetSeed(s.seed)
	_, _ = h.WriteString(l.Name)
	_ = h.WriteByte(0) // no owner has one
	_, _ = h.WriteString(owner)
	key := h.Sum64()
	since, known := s.last[key]
	if !known {
		since = now
	}
	if len(s.next) >= maxHolds {
		return since, false, false
	}
	s.next[key] = since
	return since, !known && s.looked, true
}

// turn ends a look. One that failed is forgotten: what was seen before it still counts.
func (s *seen) turn(complete bool) {
	if complete {
		s.last, s.looked = s.next, true
	}
	s.next = make(map[uint64]time.Time, len(s.last))
}
