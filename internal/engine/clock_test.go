package engine

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

type answer = func(*faketransport.SentCall) (any, error, bool)

func clockOver(t *testing.T, tr transport.Transport) (*Clock, *faketransport.Log) {
	t.Helper()
	e, log := engineOver(t, tr)
	return &e.Clock, log
}

// clockAt answers TIME halfway through the round trip, with a clock that is ahead.
func clockAt(ahead, roundTrip time.Duration) answer {
	return func(c *faketransport.SentCall) (any, error, bool) {
		go func() {
			time.Sleep(roundTrip / 2)
			us := time.Now().Add(ahead).UnixMicro()
			time.Sleep(roundTrip / 2)
			c.Ends([]any{[]byte(strconv.FormatInt(us/1e6, 10)), strconv.FormatInt(us%1e6, 10)}, nil)
		}()
		return nil, nil, false
	}
}

func TestClockOffsetUsesRoundTripMidpoint(t *testing.T) {
	for _, ahead := range []time.Duration{0, time.Hour, -time.Hour, 1234 * time.Microsecond} {
		synctest.Test(t, func(t *testing.T) {
			c, log := clockOver(t, &faketransport.Fake{Answer: clockAt(ahead, 2*time.Second)})
			got, err := c.Compare(t.Context())
			require.NoError(t, err)
			require.Equal(t, ahead, got)
			if ahead.Abs() > time.Minute {
				require.Contains(t, log.String(), "clock differs")
			}
			require.Equal(t, time.Now().UnixMilli(), c.NowMillis(), "only on request")
			c.engine.ServerTime = true
			require.Equal(t, time.Now().Add(ahead).UnixMilli(), c.NowMillis())
		})
	}
}

func TestSlowReplyIsNotClockOffset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, log := clockOver(t, &faketransport.Fake{Answer: clockAt(1400*time.Millisecond, time.Second)})
		got, err := c.Compare(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1400*time.Millisecond, got)
		require.NotContains(t, log.String(), "clock differs")
	})
}

func TestInvalidTimeReplyIsRejected(t *testing.T) {
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
				c, _ := clockOver(t, &faketransport.Fake{Answer: answering(reply, nil)})
				_, err := c.Compare(t.Context())
				require.ErrorIs(t, err, transport.ErrBadReply)
				require.Zero(t, c.ahead)
			})
		})
	}
}

func TestClocksAreComparedEveryMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fake{Answer: clockAt(0, time.Second)}
		c, _ := clockOver(t, f)
		for range 601 { // ten minutes
			began := time.Now()
			c.Keep(t.Context())
			require.Zero(t, time.Since(began), "it does not wait")
			time.Sleep(time.Second)
		}
		time.Sleep(2 * time.Second)
		require.InDelta(t, 10, len(f.Sent()), 1)
		for i, call := range f.Sent()[1:] {
			require.GreaterOrEqual(t, call.At.Sub(f.Sent()[i].At), clockFresh)
		}
	})
}

func TestCallersWaitForFirstClockComparison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fake{Answer: clockAt(time.Hour, time.Second)}
		c, _ := clockOver(t, f)
		c.engine.ServerTime = true
		began := time.Now()
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		c.Keep(ended)
		require.Zero(t, time.Since(began), "unless they leave")
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				c.Keep(t.Context())
				require.Equal(t, time.Second, time.Since(began))
				require.Equal(t, time.Now().Add(time.Hour).UnixMilli(), c.NowMillis())
			})
		}
		wg.Wait()
		require.Len(t, f.Sent(), 1)
		time.Sleep(2 * clockFresh)
		again := time.Now()
		c.Keep(t.Context())
		require.Zero(t, time.Since(again), "an old comparison is better than waiting")
		time.Sleep(2 * time.Second)
		require.Len(t, f.Sent(), 2)
	})
}

func TestClockComparisonRetriesOutagesNotRejections(t *testing.T) {
	for name, test := range map[string]struct {
		err   error
		again bool
	}{
		"not sent": {errNotSent, true},
		"broken":   {errBroken, true},
		"refused":  {errRefused, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &faketransport.Fake{Answer: answering(nil, test.err)}
				c, log := clockOver(t, f)
				c.engine.ServerTime = true
				began := time.Now()
				c.Keep(t.Context())
				require.LessOrEqual(t, time.Since(began), testCommand/2, "the call itself also takes time")
				time.Sleep(testCommand)
				synctest.Wait()
				require.Contains(t, log.String(), "cannot read the server's clock")
				before := len(f.Sent())
				c.Keep(t.Context())
				synctest.Wait()
				require.Equal(t, test.again, len(f.Sent()) > before)
			})
		})
	}
}

func TestMissingTimeRightIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fake{Answer: answering(nil, errRefused)}
		c, log := clockOver(t, f)
		for range 3 {
			c.Keep(t.Context())
			time.Sleep(2 * clockFresh)
		}
		require.Len(t, f.Sent(), 3)
		require.Equal(t, 1, log.Count("level=WARN msg=\"redlatch: cannot read the server's clock"))
		require.Equal(t, 1, log.Count("right=+time"))
	})
}

func TestClosedClientComparesNoClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fake{Answer: clockAt(0, time.Second)}
		c, _ := clockOver(t, f)
		c.engine.ServerTime = true
		require.NoError(t, c.engine.Close())
		c.Keep(t.Context())
		c.Keep(t.Context())
		require.Empty(t, f.Sent())
	})
}

func TestSlowComparisonMovesNoClock(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	var o Clock
	o.store(1200*ms, 1300*ms)
	require.Equal(t, 1200*ms, o.ahead, "the first comparison counts, even if slow")
	o.store(2*ms, ms)
	require.Equal(t, 2*ms, o.ahead, "a better one does")
	o.store(1200*ms, 1300*ms)
	require.Equal(t, 2*ms, o.ahead, "one slow comparison that agrees")
	o.store(5000*ms, 1300*ms)
	require.Equal(t, 5000*ms, o.ahead, "the clock was set")
	o.store(5400*ms, 1400*ms)
	require.Equal(t, 5400*ms, o.ahead, "all are as slow")

	o.store(2*ms, ms)
	for range 12 {
		o.store(300*ms, 500*ms)
	}
	require.Equal(t, 300*ms, o.ahead, "slow ones for minutes: the clocks may have drifted")
}
