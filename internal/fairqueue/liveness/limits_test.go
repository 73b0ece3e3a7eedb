package liveness_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/fairqueue/liveness"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/reply"
)

func TestGraceWithoutAnObservedEndIsNotOver(t *testing.T) {
	t.Parallel()
	for _, long := range []time.Duration{limits.Max / 3, limits.Max / 2, limits.Max} {
		for _, owner := range []string{foreign(), native(t)} {
			s := newScene(t, owner)
			s.Detector = liveness.New(liveness.Config{Grace: long, Period: period})
			s.listeners[owner] = 0
			s.queue = append(s.queue, s.ours)
			for range 100 {
				require.Empty(t, s.look(), "no owner is dead after minutes")
				s.now = s.now.Add(period)
			}
			require.Positive(t, s.Next(s.now))
			require.LessOrEqual(t, s.Next(s.now), period)
		}
	}
}

func TestDeadlinesWithoutAnEndAreWaitsThatCanBeSent(t *testing.T) {
	t.Parallel()
	for _, deadline := range []string{"inf", "-inf", "1e300", "-1e300", "", "9223372036854775807"} {
		s := newScene(t)
		front := []reply.Place{{Owner: foreign(), Deadline: "1"}, {Owner: foreign(), Deadline: deadline}, {Owner: foreign(), Deadline: "2"}}
		s.Look(s.now, reply.Beat{Left: 1, Front: front, Length: 3}, func(string) bool { return false }, s.ours)
		others := s.Others()
		require.Len(t, others, 3)
		for _, o := range others {
			require.GreaterOrEqual(t, o.Wait, int64(0), deadline)
			require.LessOrEqual(t, o.Wait, limits.Max.Milliseconds(), deadline)
		}
	}
}
