package rlock_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// Under contention a wait mostly ends while an attempt is under way. That is
// contention all the same, and no trouble with Redis.
func TestU33WaitsThatEndUnderContentionAreToldFromTroubleWithRedis(t *testing.T) {
	t.Parallel()
	srv, client := onShared(t)
	name := redistest.Key(t)
	hold := take(t, rlock.New(client, name))
	conn := srv.Dial(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // keeps the attempts coming
		for {
			select {
			case <-stop:
				return
			default:
				_, err := conn.Do("PUBLISH", "redisson_lock__channel:{"+name+"}", "0")
				assert.NoError(t, err)
			}
		}
	})
	var ended, first atomic.Int64
	var waiters sync.WaitGroup
	for i := range 50 {
		waiters.Go(func() {
			for range 20 {
				err := waitABit(t.Context(), rlock.New(client, name), i%2 == 0)
				// Where not even the first attempt was answered, nobody knows.
				if errors.Is(err, redlatch.ErrNotAcquired) {
					ended.Add(1)
				} else {
					first.Add(1)
				}
				assert.Equal(t, i%2 == 1, errors.Is(err, context.DeadlineExceeded), "%v", err)
			}
		})
	}
	waiters.Wait()
	close(stop)
	wg.Wait()
	require.Greater(t, ended.Load(), 9*first.Load(), "told as contention, and not")
	require.NoError(t, hold.Unlock())
}

// waitABit waits for a lock that stays held, by either bound, and returns the
// error.
func waitABit(ctx context.Context, l *rlock.Lock, own bool) error {
	wait := 20*time.Millisecond + rand.N(20*time.Millisecond)
	if own {
		_, err := l.Lock(ctx, rlock.WithWait(wait))
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	_, err := l.Lock(ctx)
	return err
}
