package hold_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/rlock"
)

func TestUnlockBehindReentryTakesOneCommandTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const command = 3 * time.Second
		var reentries []*faketransport.SentCall
		tr := &faketransport.Fake{Answer: func(c *faketransport.SentCall) (any, error, bool) {
			switch c.Name {
			case "acquire":
				return nil, nil, true
			case "reenter":
				reentries = append(reentries, c)
				return int64(1), nil, len(reentries) == 1
			}
			return nil, nil, false
		}}
		client := clientOver(t, tr, redlatch.WithCommandTimeout(command))
		l := rlock.New(client, "job")
		outer, err := l.Lock(t.Context())
		require.NoError(t, err)
		inner, err := l.Lock(outer.Context(t.Context()))
		require.NoError(t, err)
		innermost := make(chan error, 1)
		ctx := context.WithoutCancel(inner.Context(t.Context()))
		go func() {
			_, err := l.Lock(ctx)
			innermost <- err
		}()
		synctest.Wait()
		require.Len(t, reentries, 2)
		time.AfterFunc(command-time.Second, func() { reentries[1].Ends(int64(1), nil) })
		began := time.Now()
		require.NoError(t, inner.Unlock(), "the count is corrected in the background")
		require.Equal(t, command, time.Since(began))
		<-innermost
	})
}

func TestUnlockOfSharedOwnerTakesOneCommandTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const command = 3 * time.Second
		var release *faketransport.SentCall
		tr := &faketransport.Fake{Answer: func(c *faketransport.SentCall) (any, error, bool) {
			if c.Name == "release_shared" {
				release = c
			}
			return nil, nil, c.Name == "acquire"
		}}
		client := clientOver(t, tr, redlatch.WithCommandTimeout(command))
		l, owner := rlock.New(client, "job"), redlatch.NewOwner(uuid.New(), 1)
		first, err := l.Lock(t.Context(), rlock.WithOwner(owner))
		require.NoError(t, err)
		began := time.Now()
		unlocked := make(chan error, 1)
		go func() { unlocked <- first.Unlock() }()
		synctest.Wait()
		_, err = l.Lock(t.Context(), rlock.WithOwner(owner), rlock.WithLease(time.Hour))
		require.NoError(t, err)
		time.Sleep(command - time.Second)
		release.Ends(int64(0), nil)
		require.NoError(t, <-unlocked)
		require.LessOrEqual(t, time.Since(began), command)
		synctest.Wait()
		require.Equal(t, "renew", tr.Last(t).Name, "the lease is restored all the same")
	})
}
