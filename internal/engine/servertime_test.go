package engine

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
)

// clockAt answers TIME with a server's clock that is ahead, after half of the
// round trip has passed.
func clockAt(ahead, roundTrip time.Duration) func(*sentCall) (any, error, bool) {
	return func(c *sentCall) (any, error, bool) {
		go func() {
			time.Sleep(roundTrip / 2)
			us := time.Now().Add(ahead).UnixMicro()
			time.Sleep(roundTrip / 2)
			c.ends([]any{[]byte(strconv.FormatInt(us/1e6, 10)), strconv.FormatInt(us%1e6, 10)}, nil)
		}()
		return nil, nil, false
	}
}

func TestClocksAreComparedToTheMiddleOfTheRoundTrip(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour, 1234 * time.Microsecond} {
		synctest.Test(t, func(t *testing.T) {
			e, log := engineOver(t, &fake{answer: clockAt(ahead, 2*time.Second)})
			got, err := e.CompareClocks(t.Context())
			require.NoError(t, err)
			require.Equal(t, ahead, got)
			if ahead.Abs() > time.Minute {
				require.Contains(t, log.String(), "apart")
			}
			require.Equal(t, time.Now().UnixMilli(), e.NowMillis(), "not without being asked for")
			e.ServerTime = true
			require.Equal(t, time.Now().Add(ahead).UnixMilli(), e.NowMillis())
		})
	}
}

// What may be due to the round trip is no reason for a warning.
func TestSlowReplyIsNoClockThatIsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, log := engineOver(t, &fake{answer: clockAt(1400*time.Millisecond, time.Second)})
		got, err := e.CompareClocks(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1400*time.Millisecond, got)
		require.NotContains(t, log.String(), "apart")
	})
}

func TestAnswersToTimeThatAreNoneAreRefused(t *testing.T) {
	for name, reply := range map[string]any{
		"nil":       nil,
		"text":      "1700000000",
		"one":       []any{"1700000000"},
		"three":     []any{"1", "2", "3"},
		"numbers":   []any{int64(1), int64(2)},
		"no number": []any{"1700000000", "x"},
		"too much":  []any{"17000000000000000000000", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, _ := engineOver(t, &fake{answer: answering(reply, nil)})
				_, err := e.CompareClocks(t.Context())
				require.ErrorIs(t, err, codec.ErrBadReply)
				require.Zero(t, e.clock.load())
			})
		})
	}
}

func TestClocksAreComparedOnceAMinuteInTheBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: clockAt(0, time.Second)}
		e, _ := engineOver(t, f)
		for range 601 { // ten minutes
			began := time.Now()
			e.KeepTime(t.Context())
			require.Zero(t, time.Since(began), "nobody waits for it")
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Second)
		require.InDelta(t, 10, len(f.sent()), 1)
		for i, c := range f.sent()[1:] {
			require.GreaterOrEqual(t, c.at.Sub(f.sent()[i].at), clockFresh)
		}
	})
}

// Who needs the server's time waits for the first comparison, with whoever else
// does, and for none after that.
func TestFirstComparisonIsWaitedForByAllWhoNeedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: clockAt(time.Hour, time.Second)}
		e, _ := engineOver(t, f)
		e.ServerTime = true
		began := time.Now()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		e.KeepTime(ended)
		require.Zero(t, time.Since(began), "unless they leave")
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				e.KeepTime(t.Context())
				require.Equal(t, time.Second, time.Since(began))
				require.Equal(t, time.Now().Add(time.Hour).UnixMilli(), e.NowMillis())
			})
		}
		wg.Wait()
		require.Len(t, f.sent(), 1)
		time.Sleep(2 * clockFresh)
		again := time.Now()
		e.KeepTime(t.Context())
		require.Zero(t, time.Since(again), "an old comparison is better than waiting")
		time.Sleep(2 * time.Second)
		require.Len(t, f.sent(), 2)
	})
}

func TestComparisonIsMadeUpForWhenTheServerWasAwayAndNotWhenItRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		err   error
		again bool
	}{
		"not sent": {errNotSent, true},
		"broken":   {errBroken, true},
		"refused":  {errRefused, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{answer: answering(nil, c.err)}
				e, log := engineOver(t, f)
				e.ServerTime = true
				began := time.Now()
				e.KeepTime(t.Context())
				require.LessOrEqual(t, time.Since(began), testCommand/2, "the call itself needs time, too")
				time.Sleep(testCommand)
				synctest.Wait()
				require.Contains(t, log.String(), "cannot be read")
				before := len(f.sent())
				e.KeepTime(t.Context())
				synctest.Wait()
				require.Equal(t, c.again, len(f.sent()) > before)
			})
		})
	}
}

func TestRightToTheTimeIsMissedInOneLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: answering(nil, errRefused)}
		e, log := engineOver(t, f)
		for range 3 {
			e.KeepTime(t.Context())
			time.Sleep(2 * clockFresh)
		}
		require.Len(t, f.sent(), 3)
		require.Equal(t, 1, log.count("level=WARN msg=\"redlatch: the server's clock cannot be read"))
		require.Equal(t, 1, log.count("right=+time"))
	})
}

func TestClosedEngineComparesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{answer: clockAt(0, time.Second)}
		e, _ := engineOver(t, f)
		e.ServerTime = true
		require.NoError(t, e.Close())
		e.KeepTime(t.Context())
		e.KeepTime(t.Context())
		require.Empty(t, f.sent())
	})
}
