package hold_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

const queueLease = 30 * time.Second

var (
	errLost       = fmt.Errorf("%w: connection reset", transport.ErrUncertain)
	errNotReached = fmt.Errorf("%w: connection refused", transport.ErrNotSent)
	errHalfWay    = &transport.ServerError{Text: "ERR the script failed"}
)

type outcome struct {
	reply any
	err   error
}

// queueScripts is a transport that sets the outcome of each script of a fair lock.
type queueScripts struct {
	*faketransport.Fencing
	acquire, release, giveUp func() outcome
}

func always(reply any, err error) func() outcome {
	return func() outcome { return outcome{reply, err} }
}

func newQueueScripts(acquire error) *queueScripts {
	s := &queueScripts{acquire: always(nil, acquire), release: always(nil, nil), giveUp: always(nil, nil)}
	s.Fencing = &faketransport.Fencing{
		Fake: &faketransport.Fake{Answer: func(c *faketransport.SentCall) (any, error, bool) {
			var out outcome
			switch c.Name {
			case "fair_acquire":
				out = s.acquire()
			case "fair_release":
				out = s.release()
			case "fair_give_up":
				out = s.giveUp()
			default:
				out.err = errHalfWay
			}
			return out.reply, out.err, true
		}},
		Kill: func(context.Context) error { return errHalfWay },
	}
	return s
}

// undone returns the calls that undo attempts, in order.
func (s *queueScripts) undone() []string {
	var all []string
	for _, c := range s.Sent() {
		if c.Name == "fair_release" || c.Name == "fair_give_up" {
			all = append(all, c.Name)
		}
	}
	return all
}

// lockFair fails to acquire a fair lock, waits until the attempt has been undone, and returns the log.
func lockFair(t *testing.T, s *queueScripts, opts ...rlock.Option) *faketransport.Log {
	t.Helper()
	log := &faketransport.Log{}
	client := clientOver(t, s, redlatch.WithWatchdogTimeout(queueLease),
		redlatch.WithFairWaitTimeout(10*queueLease), redlatch.WithLogger(slog.New(slog.NewTextHandler(log, nil))))
	_, err := rfairlock.New(client, "job").Lock(t.Context(), opts...)
	require.Error(t, err)
	time.Sleep(20 * queueLease)
	synctest.Wait()
	return log
}

func TestInDoubtAttemptReleasesLockAndPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newQueueScripts(errLost)
		log := lockFair(t, s)
		undone := s.undone()
		require.Greater(t, len(undone), 40)
		require.Zero(t, len(undone)%2)
		for i, name := range undone {
			require.Equal(t, []string{"fair_release", "fair_give_up"}[i%2], name)
		}
		require.Contains(t, log.String(), "abandoned", "after one lease")
	})
}

func TestInDoubtAttemptOfGivenOwnerReleasesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newQueueScripts(errLost)
		s.Conn = 7
		s.Kill = func(context.Context) error { return nil }
		log := lockFair(t, s, rlock.WithOwner(codec.NewOwner(uuid.New(), 1)))
		require.Equal(t, []string{"fair_give_up"}, s.undone())
		require.Contains(t, log.String(), "was_held=false")
	})
}

func TestLeavingQueueResolvesInDoubtAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newQueueScripts(errHalfWay)
		s.release = always(int64(1), nil)
		failures := 3
		s.giveUp = func() outcome {
			if failures--; failures >= 0 {
				return outcome{nil, errNotReached}
			}
			return outcome{}
		}
		log := lockFair(t, s)
		require.Len(t, s.undone(), 8)
		require.Contains(t, log.String(), "call resolved")
	})
}

func TestFailedAttemptLeavesQueueAfterLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const away = 3 * queueLease
		began := time.Now()
		s := newQueueScripts(errHalfWay)
		s.release = func() outcome {
			if time.Since(began) < away {
				return outcome{nil, errNotReached}
			}
			return outcome{}
		}
		log := lockFair(t, s)
		undone := s.Last(t)
		require.Equal(t, "fair_give_up", undone.Name)
		require.InDelta(t, away.Seconds(), undone.At.Sub(began).Seconds(), 2)
		require.NotContains(t, log.String(), "abandoned")
		require.Contains(t, log.String(), "call resolved")
	})
}
