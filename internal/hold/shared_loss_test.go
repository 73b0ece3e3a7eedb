package hold_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/rlock"
)

func TestStaleReentryRefusalKeepsNewerHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reenter *faketransport.SentCall
		tr := &faketransport.Fake{Answer: func(c *faketransport.SentCall) (any, error, bool) {
			switch c.Name {
			case "acquire":
				return nil, nil, true
			case "reenter":
				reenter = c
				return nil, nil, false
			}
			return int64(1), nil, true
		}}
		client := clientOver(t, tr)
		l, owner := rlock.New(client, "job"), redlatch.NewOwner(uuid.New(), 1)
		take := func() *rlock.Hold {
			h, err := l.TryLock(t.Context(), rlock.WithOwner(owner), rlock.WithLease(time.Hour))
			require.NoError(t, err)
			return h
		}
		old := take()
		inner := make(chan error, 1)
		go func() {
			_, err := l.TryLock(old.Context(t.Context()))
			inner <- err
		}()
		synctest.Wait()
		require.NotNil(t, reenter)
		time.Sleep(time.Millisecond)
		newer := take()
		reenter.Ends(nil, nil)
		require.ErrorIs(t, <-inner, redlatch.ErrLost)
		require.ErrorIs(t, old.Err(), redlatch.ErrLost)
		require.NoError(t, newer.Err())
		require.NoError(t, newer.Unlock())
	})
}
