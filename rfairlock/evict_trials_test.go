package rfairlock_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
)

// atOnceAfterEvict is what `redlatch evict` promises to the waiter behind a dead one.
const atOnceAfterEvict = time.Second

// Whatever the waiters do at that moment, poll, prolong their places or subscribe, and
// whichever process the next one is of. No time passes at all: a waiter that is not woken asks
// again within a second and a quarter.
func TestTheNextWaiterHoldsWithinASecondOfAnyEvict(t *testing.T) {
	for trial := range testlevel.Rounds(3, 50) {
		synctest.Test(t, func(t *testing.T) {
			draw := rand.New(rand.NewPCG(1, uint64(trial)))
			srv := redistest.Mini(t, embedded.WithInProcess())
			l := rfairlock.New(hostOf(t, srv, 0, patient()), "job")
			others := rfairlock.New(hostOf(t, srv, 0, patient()), "job")
			queueByHand(t, srv, "job", foreignHead, time.Now().Add(time.Hour))
			var all []*waiter
			for range 1 + draw.IntN(4) {
				if draw.IntN(2) == 0 {
					l, others = others, l
				}
				all = append(all, await(t.Context(), l))
				synctest.Wait()
				time.Sleep(time.Duration(draw.Int64N(int64(2 * time.Second))))
			}
			time.Sleep(time.Duration(draw.Int64N(int64(30 * time.Second))))
			done, err := admin.Evict(t.Context(), others, foreignHead)
			require.NoError(t, err)
			require.True(t, done.Woken)
			for _, w := range all {
				require.NoError(t, w.acquired(t, time.Millisecond).Unlock(), "trial %d", trial)
			}
		})
	}
}

func TestTheNextWaiterHoldsWithinASecondOfAnyEvictOnARealServer(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	waiting, evicting := connect(t, s.URL(), noPoll(), patient()), connect(t, s.URL())
	var slowest time.Duration
	for range testlevel.Rounds(20, 200) {
		redistest.UnlessTheMachineStalls(t, func() error {
			name := redistest.Key(t)
			queueByHand(t, s, name, foreignHead, time.Now().Add(time.Hour))
			w := await(t.Context(), rfairlock.New(waiting, name))
			awaitAsleep(t, s, name, 2)
			began := time.Now()
			_, err := admin.Evict(t.Context(), rfairlock.New(evicting, name), foreignHead)
			require.NoError(t, err)
			require.NoError(t, w.acquired(t, soon).Unlock())
			took := w.at.Sub(began)
			if took > atOnceAfterEvict {
				return fmt.Errorf("the next one holds the lock after %v", took)
			}
			slowest = max(slowest, took)
			return nil
		})
	}
	t.Logf("the slowest took %v", slowest)
}
