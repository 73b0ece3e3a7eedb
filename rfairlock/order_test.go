package rfairlock_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// Redisson's default pool of subscriptions, 50, is too small for them.
func TestManyWaitersAcquireInQueueOrder(t *testing.T) {
	for _, clients := range testlevel.Part([]int{5, 1}, 2, "") {
		n := testlevel.Rounds(55, 300)
		synctest.Test(t, func(t *testing.T) {
			srv, _, _ := inBubble(t)
			var locks []*rlock.Lock
			for range clients {
				client, _ := fakeClient(t, srv, noPoll())
				locks = append(locks, rfairlock.New(client, "job"))
			}
			holdByHand(t, srv, "job", time.Hour)
			var got []string // guarded by the lock
			var wg sync.WaitGroup
			for i := range n {
				wg.Go(func() {
					hold, err := locks[i%clients].Lock(t.Context())
					if !assert.NoError(t, err) {
						return
					}
					got = append(got, hold.Owner().String())
					assert.NoError(t, hold.Unlock())
				})
			}
			synctest.Wait()
			queue := queueOf(t, srv, "job")
			require.Len(t, queue, n)
			freed := time.Now()
			freeByHand(t, srv, "job")
			wg.Wait()
			require.Zero(t, time.Since(freed))
			require.Equal(t, queue, got)
			requireNoTrace(t, srv, "job")
		})
	}
}
