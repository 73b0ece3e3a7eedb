package fairqueue

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

func TestShortWaitSendsNoHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 0)
		time.Sleep(period - time.Millisecond)
		synctest.Wait()
		require.Empty(t, names(s.Fake))
		s.leave()
		time.Sleep(time.Hour)
		require.Empty(t, names(s.Fake))
	})
}

func TestHeartbeatStartsImmediatelyForFreeLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 0)
		for range 3 {
			s.place.group.plan(time.Minute, true)
			time.Sleep(time.Millisecond)
			synctest.Wait()
			require.Equal(t, 1, count(s.Fake, "HEARTBEAT"), "more do not come sooner")
		}
		s.leave()
		join(s.queues, theLock, "next").leaveGroup()
		time.Sleep(time.Hour)
		require.Equal(t, 1, count(s.Fake, "HEARTBEAT"), "all have left")
	})
}

func TestGroupSendsOneHeartbeatForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 0)
		others := []*caller{join(s.queues, theLock, "b"), join(s.queues, theLock, "c"), join(s.queues, theLock, "c")}
		time.Sleep(10*period + time.Second)
		require.Equal(t, 10, count(s.Fake, "HEARTBEAT"))
		require.Equal(t, []any{70, "mine", "b", "c"}, s.said("HEARTBEAT"))
		for _, c := range s.Sent() {
			require.Equal(t, c.Name == "HEARTBEAT", c.Urgent, "behind thousands of acquires it could be late")
		}
		s.leave()
		for _, o := range others {
			o.leaveGroup()
		}
		before := len(names(s.Fake))
		time.Sleep(time.Hour)
		require.Len(t, names(s.Fake), before, "all have left")
	})
}

func TestLongQueueGetsFewHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		s.set(func() { s.behind = 2996 })
		kind, isFake := s.place.kind.(*fakeKind)
		require.True(t, isFake)
		time.Sleep(5*period - time.Second)
		synctest.Wait()
		require.Equal(t, 3, count(s.Fake, "HEARTBEAT"))
		require.Equal(t, 1, count(s.Fake, "EVICT"), "not later than from a short queue")
		require.Equal(t, []time.Duration{15 * time.Second, 45 * time.Second, 45 * time.Second, 45 * time.Second}, kind.kept)
		s.leave()
	})
}

func TestDeadWaitersAheadAreEvictedAndObserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		var seen []engine.Evicted
		s.queues.engine.Hooks.Evicted = func(ev engine.Evicted) { seen = append(seen, ev) }
		time.Sleep(period + 10*time.Second - time.Millisecond)
		synctest.Wait()
		require.Zero(t, count(s.Fake, "EVICT"), "its grace has not passed")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, 1, count(s.Fake, "EVICT"), "all together")
		require.Len(t, seen, 3)
		require.Equal(t, "lock", seen[0].Name)
		require.Equal(t, "fair", seen[0].Kind)
		require.True(t, seen[0].IsRedlatch)
		require.GreaterOrEqual(t, seen[0].Absent, 10*time.Second)
		require.Contains(t, s.log.String(), seen[2].Owner)
		time.Sleep(time.Minute)
		require.Equal(t, 1, count(s.Fake, "EVICT"))
	})
}

func TestLiveRemoteWaitersKeepPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		head := s.queue[0]
		s.set(func() { s.listeners[head] = 1 })
		time.Sleep(2*period + time.Second)
		require.Equal(t, []any{68, "mine", head + " lives"}, s.said("HEARTBEAT"))
		time.Sleep(time.Minute)
		require.Zero(t, count(s.Fake, "EVICT"))
	})
}

func TestHeartbeatWakesUnqueuedWaitersAndHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 0)
		other := join(s.queues, theLock, "other")
		defer other.leaveGroup()
		s.set(func() { s.missing = []string{"other"} })
		time.Sleep(period + time.Second)
		require.True(t, wasCalled(other), "it lost its place")
		require.False(t, wasCalled(s.place))
		s.set(func() { s.missing, s.queue, s.left = nil, []string{"mine"}, -2 })
		time.Sleep(period)
		require.True(t, wasCalled(s.place), "the lock is free, and it is the first")
	})
}

func TestSleepingHeadIsNudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		head := s.queue[0]
		s.set(func() { s.left, s.listeners[head] = -2, 1 })
		time.Sleep(period + 1500*time.Millisecond)
		require.Equal(t, 1, count(s.Fake, "NUDGE"))
		require.Equal(t, []any{head}, s.said("NUDGE"))
		time.Sleep(10 * time.Second)
		require.InDelta(t, 6, count(s.Fake, "NUDGE"), 1, "one in two seconds")
	})
}

func TestGapOrReconnectHastensHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		time.Sleep(period + time.Second)
		require.Equal(t, 1, count(s.Fake, "HEARTBEAT"))
		for range 100 {
			s.place.sawGap() // of many waiters
		}
		synctest.Wait()
		require.Equal(t, 2, count(s.Fake, "HEARTBEAT"), "immediately, one for all")
		time.Sleep(time.Second)
		before := count(s.Fake, "HEARTBEAT")
		require.LessOrEqual(t, before, 3, "once more for waiters that came during the first")
		s.reconnect()
		synctest.Wait()
		require.Equal(t, before+1, count(s.Fake, "HEARTBEAT"))
	})
}

func TestHastenedHeartbeatsKeepMinimumInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		time.Sleep(period + time.Second)
		before := count(s.Fake, "HEARTBEAT")
		for range 500 {
			s.place.sawGap()
			time.Sleep(10 * time.Millisecond)
		}
		sent := count(s.Fake, "HEARTBEAT") - before
		require.InDelta(t, 5*time.Second/hurried, sent, 1)
	})
}

func TestMissingCountsPreventEvictionAndAreLoggedOnce(t *testing.T) {
	for name, refuse := range map[string]func(s *fakeServer){
		"no right": func(s *fakeServer) { s.refusal = errRefused },
		"a proxy":  func(s *fakeServer) { s.listeners["mine"] = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := beating(t, 10*time.Second)
				s.set(func() { refuse(s) })
				time.Sleep(5 * time.Minute)
				require.Zero(t, count(s.Fake, "EVICT"))
				require.GreaterOrEqual(t, count(s.Fake, "HEARTBEAT"), 59, "places are still kept")
				require.Equal(t, 1, s.log.Count("cannot detect dead waiters"))
				s.set(func() { s.refusal, s.listeners["mine"] = nil, 1 })
				time.Sleep(time.Minute)
				require.Equal(t, 1, count(s.Fake, "EVICT"))
				require.Equal(t, 1, s.log.Count("are detected again"))
			})
		})
	}
}

func TestFailedHeartbeatIsRetriedAndLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		s.set(func() { s.outage = &transport.ServerError{Text: "WRONGTYPE that is no list"} })
		time.Sleep(period + 10*time.Second)
		require.InDelta(t, 10, count(s.Fake, "HEARTBEAT"), 2, "once a second")
		require.Equal(t, 1, s.log.Count("queue heartbeat failed"))
		s.set(func() { s.outage = nil })
		time.Sleep(time.Minute)
		require.Equal(t, 1, count(s.Fake, "EVICT"))
	})
}

func TestFailedHeartbeatOfLongQueueIsRetriedLessOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 0)
		s.set(func() { s.behind = 5996 })
		time.Sleep(2*period + time.Second)
		before := count(s.Fake, "HEARTBEAT")
		s.set(func() { s.outage = errLoading })
		time.Sleep(90 * time.Second) // while the places last
		require.InDelta(t, 11, count(s.Fake, "HEARTBEAT")-before, 1)
	})
}

// The next heartbeat would keep the places for longer than the last one did.
func TestFailedHeartbeatOfGrowingQueueIsRetriedWhilePlacesLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 0)
		s.set(func() { s.behind = 5996 })
		time.Sleep(period + time.Second)
		before := count(s.Fake, "HEARTBEAT")
		s.set(func() { s.outage = errLoading })
		time.Sleep(2*period + 4*time.Second)
		require.InDelta(t, 10, count(s.Fake, "HEARTBEAT")-before, 1)
	})
}

func TestCloseStopsHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		time.Sleep(period + time.Second)
		requireNothingOpen(t, s.queues)
		before := len(names(s.Fake))
		require.Positive(t, before)
		time.Sleep(time.Hour)
		require.Len(t, names(s.Fake), before)
	})
}

func TestStoppedHeartbeatsRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		group := s.place.group
		time.Sleep(period + time.Second)
		s.leave()
		synctest.Wait()
		require.False(t, group.beating)
		before := count(s.Fake, "HEARTBEAT")
		s.place = join(s.queues, theLock, "mine")
		require.Same(t, group, s.place.group)
		time.Sleep(period + time.Second)
		require.Equal(t, before+1, count(s.Fake, "HEARTBEAT"))
		s.leave()
		requireNoGroup(t, s.queues)
	})
}

var errOther = errors.New("another reason")

func TestCountFailureIsLoggedOnlyWhenItPersists(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		s.set(func() { s.refusal = errBroken })
		time.Sleep(2*period + time.Second)
		require.Zero(t, s.log.Count("cannot detect dead waiters"), "the connection may return soon")
		time.Sleep(period)
		require.Equal(t, 1, s.log.Count("cannot detect dead waiters"))
		s.set(func() { s.refusal = errOther })
		time.Sleep(time.Minute)
		require.Equal(t, 1, s.log.Count("cannot detect dead waiters"))
	})
}

func TestMalformedRepliesAreLoggedOnceUntilValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		for lines := 1; lines <= 2; lines++ {
			s.set(func() { s.garbled = true })
			time.Sleep(time.Minute)
			require.Equal(t, lines, s.log.Count("queue heartbeat failed"))
			s.set(func() { s.garbled = false })
			time.Sleep(time.Minute)
		}
		require.Equal(t, 1, count(s.Fake, "EVICT"))
	})
}

// A count may hang on a stalled replica.
func TestCloseDoesNotWaitForCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		s.set(func() { s.mute = true })
		time.Sleep(period + time.Second)
		began := time.Now()
		s.leave()
		require.NoError(t, s.queues.engine.Close())
		require.Zero(t, time.Since(began))
	})
}

func TestHeartbeatComparesClocksEveryMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := beating(t, 10*time.Second)
		s.set(func() { s.garbled = true }) // TIME also gets a reply then
		time.Sleep(5*time.Minute + 10*time.Second)
		require.InDelta(t, 5, count(s.Fake, "TIME"), 1)
	})
}

func TestGapOrReconnectDelaysEviction(t *testing.T) {
	for name, cut := range map[string]func(s *fakeServer){
		"gap": func(s *fakeServer) { s.place.sawGap() }, "new connection": (*fakeServer).reconnect,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := beating(t, 10*time.Second)
				for range 20 {
					time.Sleep(period - time.Millisecond) // before the next one is due
					cut(s)
				}
				require.Zero(t, count(s.Fake, "EVICT"))
			})
		})
	}
}

func TestProofIsTheLastSubscribedWaiter(t *testing.T) {
	for name, prepare := range map[string]func(s *fakeServer, other *caller){
		"the other is no longer subscribed": func(_ *fakeServer, other *caller) { other.setSub(nil) },
		"the first has just got the lock": func(s *fakeServer, _ *caller) {
			s.set(func() { s.listeners["mine"], s.listeners["other"] = 0, 1 })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := beating(t, 10*time.Second)
				other := join(s.queues, theLock, "other")
				defer other.leaveGroup()
				other.setSub(newFakeSub())
				prepare(s, other)
				time.Sleep(period + 10*time.Second + time.Second)
				require.Equal(t, 1, count(s.Fake, "EVICT"))
				require.Zero(t, s.log.Count("cannot detect dead waiters"))
			})
		})
	}
}
