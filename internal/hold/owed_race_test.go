package hold_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
)

func TestAReleaseLeavesAHoldThatIsJustGrantedItsLease(t *testing.T) {
	t.Parallel()
	var short atomic.Int64 // releases that left less than any of the leases
	tr := &faketransport.Fake{Answer: func(c *faketransport.SentCall) (any, error, bool) {
		switch c.Name {
		case "acquire":
			return nil, nil, true
		case "release_shared":
			if lease, ok := c.Call.Args[4].(int64); assert.True(t, ok) && lease < (30*time.Second).Milliseconds() {
				short.Add(1)
			}
			return int64(0), nil, true
		}
		return int64(1), nil, true
	}}
	client := clientOver(t, tr)
	l, owner := rlock.New(client, "job"), redlatch.NewOwner(uuid.New(), 1)
	take := func() *rlock.Hold {
		h, err := l.TryLock(t.Context(), rlock.WithOwner(owner), rlock.WithLease(time.Hour))
		assert.NoError(t, err)
		return h
	}
	most := time.Duration(testlevel.Rounds(250, 1000)) * time.Millisecond
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			for began := time.Now(); time.Since(began) < most; {
				assert.NoError(t, take().Unlock())
			}
		})
	}
	both.Wait()
	require.Zero(t, short.Load())
}
