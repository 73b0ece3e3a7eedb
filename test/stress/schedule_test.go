//go:build linux

package stress

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// event is a scheduled fault.
type event struct {
	fault  *fault
	at     time.Duration // from the start of the round
	length time.Duration
	pick   uint64 // random number for choices that the fault makes
}

// usualGap is the default for the maximum pause between two faults in a lane.
const usualGap = 4 * time.Second

// dealer deals the faults in one lane like cards.
type dealer struct {
	rnd   *rand.Rand
	kinds []*fault
	deck  []*fault
}

// pause returns the minimum pause between faults in the lane.
func (d *dealer) pause() (least time.Duration) {
	for _, f := range d.kinds {
		least = max(least, f.pause)
	}
	return least
}

// deal returns the next fault. In an odd round, faults of odd rounds come first; in other rounds
// they stay in the deck.
func (d *dealer) deal(odd bool) *fault {
	at := slices.IndexFunc(d.deck, func(f *fault) bool { return f.odd == odd })
	if at < 0 && odd && len(d.deck) > 0 {
		at = 0
	}
	if at < 0 {
		fresh := slices.Clone(d.kinds)
		d.rnd.Shuffle(len(fresh), func(i, j int) { fresh[i], fresh[j] = fresh[j], fresh[i] })
		for _, f := range fresh {
			if !slices.Contains(d.deck, f) {
				d.deck = append(d.deck, f)
			}
		}
		at = max(0, slices.IndexFunc(d.deck, func(f *fault) bool { return f.odd == odd }))
	}
	f := d.deck[at]
	d.deck = slices.Delete(d.deck, at, at+1)
	return f
}

// scheduler makes the schedules of a campaign's rounds.
type scheduler struct {
	rnd   *rand.Rand
	gap   time.Duration
	count int // rounds
	lanes []*dealer
}

// newScheduler returns a scheduler for the given kinds of faults, with pauses up to gap. Its schedules depend only on
// the seed.
func newScheduler(seed uint64, gap time.Duration, kinds []*fault) *scheduler {
	s := &scheduler{rnd: rand.New(rand.NewPCG(seed, 0)), gap: gap}
	byLane := map[lane]*dealer{}
	for _, f := range kinds {
		d := byLane[f.lane]
		if d == nil {
			d = &dealer{rnd: s.rnd}
			byLane[f.lane] = d
			s.lanes = append(s.lanes, d)
		}
		d.kinds = append(d.kinds, f)
	}
	return s
}

// round returns the schedule of a round in order. Every fault ends within the round.
func (s *scheduler) round(length time.Duration) []event {
	var all []event
	odd := s.count%2 == 1
	s.count++
	for _, d := range s.lanes {
		// A fault that must be alone in its round is the last one.
		for at := s.upTo(s.gap); at < length; at += d.pause() {
			f := d.deal(odd)
			e := event{fault: f, at: at, pick: s.rnd.Uint64(), length: f.least}
			if f.most > f.least {
				e.length += s.upTo(f.most - f.least)
			}
			e.length = min(e.length, length-at)
			all = append(all, e)
			at += e.length + s.upTo(s.gap)
		}
	}
	slices.SortStableFunc(all, func(a, b event) int { return cmp.Compare(a.at, b.at) })
	return all
}

// takes returns the time after which each kind of fault has occurred at least once.
func (s *scheduler) takes() (longest time.Duration) {
	for _, d := range s.lanes {
		sum := s.gap
		for _, f := range d.kinds {
			sum += s.gap + max(f.least, f.most) + d.pause()
		}
		longest = max(longest, sum)
	}
	return longest
}

func (s *scheduler) upTo(d time.Duration) time.Duration { return time.Duration(s.rnd.Int64N(int64(d))) }

func TestScheduleDependsOnSeedOnly(t *testing.T) {
	t.Parallel()
	rounds := func(seed uint64) [][]event {
		s := newScheduler(seed, usualGap, slices.Concat(remembering, forgetting))
		return [][]event{s.round(time.Minute), s.round(time.Minute)}
	}
	first, again := rounds(1), rounds(1)
	assert.Equal(t, first, again)
	assert.NotEqual(t, first, rounds(2))
	assert.NotEqual(t, first[0], first[1])
}

func TestLaneRunsAllFaultsInOrder(t *testing.T) {
	t.Parallel()
	kinds := slices.Concat(remembering, forgetting)
	free := map[lane]time.Duration{}
	seen := map[*fault]bool{}
	scheduler := newScheduler(3, usualGap, kinds)
	length := scheduler.takes()
	for _, e := range scheduler.round(length) {
		require.False(t, e.fault.odd)
		seen[e.fault] = true
	}
	for _, e := range scheduler.round(length) {
		require.GreaterOrEqual(t, e.at, free[e.fault.lane])
		free[e.fault.lane] = e.at + e.length
		assert.LessOrEqual(t, e.at+e.length, length)
		seen[e.fault] = true
	}
	for _, f := range kinds {
		assert.True(t, seen[f], f.name)
	}
}
