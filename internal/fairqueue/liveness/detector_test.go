package liveness_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/fairqueue/liveness"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/reply"
)

const (
	period = 5 * time.Second
	grace  = 10 * time.Second
)

type scene struct {
	*liveness.Detector
	t         *testing.T
	now       time.Time
	left      int64
	length    int64 // of the queue, if longer than queue
	queue     []string
	listeners map[string]int64
	ours      string
	other     string // another waiter in this process
}

func newScene(t *testing.T, queue ...string) *scene {
	t.Helper()
	s := &scene{
		Detector: liveness.New(grace, period),
		t:        t, now: time.Unix(1_000_000, 0), left: 3_600_000, queue: queue,
		listeners: map[string]int64{}, ours: native(t),
	}
	for _, owner := range queue {
		s.listeners[owner] = 1
	}
	s.listeners[s.ours] = 1
	return s
}

func native(t *testing.T) string {
	t.Helper()
	id, err := uuid.NewV7()
	require.NoError(t, err)
	return codec.NewOwner(id, 1).String()
}

func foreign() string { return codec.NewOwner(uuid.New(), 42).String() }

func (s *scene) look() []string {
	beat := reply.Beat{Left: s.left, Length: max(s.length, int64(len(s.queue)))}
	for _, owner := range s.queue {
		beat.Front = append(beat.Front, reply.Place{Owner: owner, Deadline: "1"})
	}
	s.Look(s.now, beat, func(owner string) bool { return owner == s.ours || owner == s.other }, s.ours)
	var counts []int64
	for _, owner := range s.Ask() {
		counts = append(counts, s.listeners[owner])
	}
	s.Counted(s.now, counts)
	var dead []string
	for _, d := range s.Evict() {
		dead = append(dead, d.Owner)
	}
	return dead
}

// deadAfter calls look once a second until a waiter is found dead, and returns how long that took,
// or 0 if it takes more than four minutes.
func (s *scene) deadAfter() time.Duration {
	for began := s.now; s.now.Sub(began) < 4*time.Minute; s.now = s.now.Add(time.Second) {
		if s.look() != nil {
			return s.now.Sub(began)
		}
	}
	return 0
}

func TestGraceDependsOnOwnerKind(t *testing.T) {
	t.Parallel()
	s := newScene(t, native(t))
	s.look()
	s.listeners[s.queue[0]] = 0
	require.Equal(t, grace, s.deadAfter())

	s = newScene(t, foreign())
	s.look()
	s.listeners[s.queue[0]] = 0
	require.Equal(t, 3*grace, s.deadAfter(), "a seen waiter may take long to reconnect")

	s = newScene(t, foreign())
	s.listeners[s.queue[0]] = 0
	require.Equal(t, 3*grace, s.deadAfter(), "a new waiter may not have subscribed yet")
}

// See redissonFactor.
func TestRedissonGraceIsAtMost30Seconds(t *testing.T) {
	t.Parallel()
	const measured = 25 * time.Second
	require.Equal(t, 30*time.Second, liveness.RedissonGrace(liveness.DefaultGrace))
	for _, grace := range []time.Duration{time.Second, 5 * time.Second, liveness.DefaultGrace} {
		require.Greater(t, liveness.RedissonGrace(grace), measured)
	}
	require.Equal(t, time.Minute, liveness.RedissonGrace(20*time.Second))
}

func TestAbsentOwnerIsNotDead(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		grace, step time.Duration
		again       bool // it is subscribed at every second look
	}{
		"subscribed again":    {grace, period, true},
		"looks too far apart": {grace, 2*period + time.Second, false},
		"no grace":            {0, period, false},
		"long grace":          {limits.Max / 3, period, false},
		"longer grace":        {limits.Max / 2, period, false},
		"longest grace":       {limits.Max, period, false},
	} {
		for _, owner := range []string{native(t), foreign()} {
			s := newScene(t, owner)
			s.Detector = liveness.New(c.grace, period)
			s.queue = append(s.queue, s.ours)
			s.listeners[owner] = 0
			for range 100 {
				require.Empty(t, s.look(), name)
				s.now = s.now.Add(c.step)
				if c.again {
					s.listeners[owner] = 1 - s.listeners[owner]
				}
			}
			require.Positive(t, s.Next(s.now), name)
			require.LessOrEqual(t, s.Next(s.now), period, name)
		}
	}
}

func TestOnlyDeadBeforeFirstLiveAreEvicted(t *testing.T) {
	t.Parallel()
	s := newScene(t, native(t), native(t), native(t), native(t))
	for _, i := range []int{0, 1, 3} {
		s.listeners[s.queue[i]] = 0
	}
	for range 3 {
		s.look()
		s.now = s.now.Add(period)
	}
	require.Equal(t, s.queue[:2], s.look())
}

func TestOwnWaitersAreNeverDead(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.other = native(t) // it does not listen yet
	s.queue = []string{s.other, native(t)}
	require.Zero(t, s.deadAfter(), "a waiter of this process is in front")
}

func TestCountWithoutProofIsIgnored(t *testing.T) {
	t.Parallel()
	s := newScene(t, native(t))
	s.look()
	require.True(t, s.Others()[0].Living)
	s.listeners[s.queue[0]], s.listeners[s.ours] = 0, 0 // no subscriber is counted, not even ours
	require.Zero(t, s.deadAfter())
	require.False(t, s.Others()[0].Living)
	s.listeners[s.ours] = 1
	require.Equal(t, grace, s.deadAfter(), "the clock began to run without a proof")
}

func TestQueryWithoutProofIsEmpty(t *testing.T) {
	t.Parallel()
	s := newScene(t, foreign())
	s.Look(s.now, reply.Beat{Left: -2, Front: []reply.Place{{Owner: s.queue[0]}}}, func(string) bool { return false }, "")
	require.Empty(t, s.Ask())
	require.False(t, s.Counted(s.now, nil))
	require.Empty(t, s.Evict())
}

func TestOwnWaitersAloneNeedNoCount(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.queue = []string{s.ours}
	s.look()
	require.Empty(t, s.Ask())
}

func TestOwnGapResetsAbsenceTimes(t *testing.T) {
	t.Parallel()
	s := newScene(t, native(t))
	s.listeners[s.queue[0]] = 0
	s.look()
	s.now = s.now.Add(9 * time.Second)
	require.Empty(t, s.look())
	s.Gap()
	require.Equal(t, grace, s.deadAfter())
}

func TestCountsTooFarApartAreIgnored(t *testing.T) {
	t.Parallel()
	s := newScene(t, native(t))
	s.listeners[s.queue[0]] = 0
	s.look()
	s.listeners[s.ours] = 0
	for range 3 {
		s.now = s.now.Add(period)
		require.Empty(t, s.look())
	}
	s.listeners[s.ours] = 1
	s.now = s.now.Add(time.Second)
	require.Empty(t, s.look(), "it may have listened while nothing could be counted")
	require.Equal(t, grace, s.deadAfter())
}

func TestRequeuedOwnerRestartsAbsence(t *testing.T) {
	t.Parallel()
	a, b := native(t), native(t)
	s := newScene(t, a, b)
	s.listeners[a] = 0
	s.look()
	s.now = s.now.Add(9 * time.Second)
	require.Empty(t, s.look())
	s.queue = []string{b, a}
	require.Empty(t, s.look())
	s.now = s.now.Add(2 * time.Second)
	s.queue = []string{a}
	require.Empty(t, s.look())
}

func TestAbsentOwnersDoNotHideLaterOwners(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	require.Equal(t, liveness.Front, s.Window())
	for range liveness.Front {
		s.queue = append(s.queue, native(t))
	}
	s.look()
	require.Equal(t, 3*liveness.Front, s.Window())
}

func TestSleepingHeadOfFreeLockIsNudged(t *testing.T) {
	t.Parallel()
	s := newScene(t, foreign())
	s.look()
	require.Empty(t, s.Nudge(s.now), "the lock is held")
	s.left = -2
	s.look()
	require.Empty(t, s.Nudge(s.now), "it has just become free")
	var nudges []string
	for range 5 {
		s.now = s.now.Add(time.Second)
		s.look()
		nudges = append(nudges, s.Nudge(s.now))
	}
	head := s.queue[0]
	require.Equal(t, []string{head, "", head, "", head}, nudges, "one in two seconds")
	s.listeners[head] = 0
	s.now = s.now.Add(2 * time.Second)
	s.look()
	require.Empty(t, s.Nudge(s.now), "no subscriber")
}

func TestFreeLockIsCheckedMoreOften(t *testing.T) {
	t.Parallel()
	s := newScene(t, native(t))
	s.look()
	require.Equal(t, period, s.Next(s.now))
	s.left = -2
	s.look()
	require.Equal(t, time.Second, s.Next(s.now))
	s.queue = nil
	s.look()
	require.Equal(t, period, s.Next(s.now), "no waiter")
}

func TestLongQueueSlowsHeartbeats(t *testing.T) {
	t.Parallel()
	s := newScene(t, native(t))
	look := func(length int64) (next, keep time.Duration) {
		s.Look(s.now, reply.Beat{Left: s.left, Length: length, Front: []reply.Place{{Owner: s.queue[0], Deadline: "1"}}},
			func(string) bool { return false }, "")
		return s.Next(s.now), s.Keep()
	}
	s.left = -2
	for _, c := range []struct {
		length     int64
		next, keep time.Duration
	}{
		{1000, time.Second, 15 * time.Second},
		{3000, time.Second, 45 * time.Second}, // the next heartbeat keeps the places for the longer time first
		{1_000_000, 15 * time.Second, 90 * time.Second},
		{math.MaxInt64, 30 * time.Second, 90 * time.Second},
		{-1, 30 * time.Second, 90 * time.Second},
		{0, time.Second, 15 * time.Second},
	} {
		next, keep := look(c.length)
		require.Equal(t, c.next, next, c.length)
		require.Equal(t, c.keep, keep, c.length)
		require.GreaterOrEqual(t, keep, 3*next)
	}
}

func TestDeadWaiterIsFoundInLongQueue(t *testing.T) {
	t.Parallel()
	s := newScene(t, native(t))
	s.length = 100_000
	for range 3 {
		s.look()
		s.now = s.now.Add(s.Next(s.now))
	}
	s.listeners[s.queue[0]] = 0
	require.Empty(t, s.look())
	s.now = s.now.Add(s.Next(s.now))
	require.Len(t, s.look(), 1)
}

func TestShrinkingQueueKeepsAbsences(t *testing.T) {
	t.Parallel()
	s := newScene(t, foreign())
	s.length = 6000
	for range 3 {
		s.look()
		s.now = s.now.Add(s.Next(s.now))
	}
	s.length, s.listeners[s.queue[0]] = 1, 0
	require.Empty(t, s.look())
	s.now = s.now.Add(s.Next(s.now))
	require.Len(t, s.look(), 1)
}

func TestNextCheckFallsWhenWaiterIsDead(t *testing.T) {
	t.Parallel()
	s := newScene(t, native(t))
	s.listeners[s.queue[0]] = 0
	s.look()
	s.now = s.now.Add(7 * time.Second)
	s.look()
	require.Equal(t, 3*time.Second, s.Next(s.now))
	s.now = s.now.Add(3 * time.Second)
	require.Len(t, s.look(), 1)
}

func TestRedlatchOwnersAreRecognizedByTheirUUID(t *testing.T) {
	t.Parallel()
	require.True(t, liveness.IsRedlatch(native(t)))
	for _, owner := range []string{foreign(), "", "x", fmt.Sprint(uuid.Nil, ":1")} {
		require.False(t, liveness.IsRedlatch(owner), owner)
	}
}

// Heartbeats move deadlines later.
func TestOthersKeepInitialWait(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	ours := func(owner string) bool { return owner == "ours" }
	look := func(front ...reply.Place) []reply.Other {
		s.Look(s.now, reply.Beat{Left: -1, Front: front}, ours, "ours")
		s.Ask()
		s.Counted(s.now, []int64{1, 0, 0, 0, 0, 0}[:len(s.Ask())])
		return s.Others()
	}
	require.Equal(t, []reply.Other{{Owner: "a"}, {Owner: "b", Wait: 400}, {Owner: "c"}, {Owner: "e"}},
		look(reply.Place{Owner: "a", Deadline: "1000"}, reply.Place{Owner: "b", Deadline: "1400"},
			reply.Place{Owner: "ours", Deadline: "1500"}, reply.Place{Owner: "c", Deadline: ""}, reply.Place{Owner: "e", Deadline: "1300"}))
	require.Equal(t, []reply.Other{{Owner: "b", Wait: 400}, {Owner: "f", Wait: 77}},
		look(reply.Place{Owner: "b", Deadline: "9000"}, reply.Place{Owner: "f", Deadline: "9077"}))
	require.Equal(t, []reply.Other{{Owner: "b", Wait: 400}, {Owner: "f", Wait: 77}},
		look(reply.Place{Owner: "b", Deadline: "9100"}, reply.Place{Owner: "f", Deadline: "9600"}))
	require.Equal(t, []reply.Other{{Owner: "f", Wait: 77}}, look(reply.Place{Owner: "f", Deadline: "9500"}))
}

func TestUnboundedDeadlineFitsWireFormat(t *testing.T) {
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
