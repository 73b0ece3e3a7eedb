package rfairlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// In each of these cases, Redisson's waiters poll without a pause.
func TestU24WaitersPauseBetweenPolls(t *testing.T) {
	far := 2 * time.Hour
	for name, block := range map[string]func(t *testing.T, srv *redistest.MiniServer){
		"dead head of a free lock": func(t *testing.T, srv *redistest.MiniServer) {
			t.Helper()
			queueByHand(t, srv, "job", foreignHead, time.Now().Add(far))
		},
		"head without a deadline": func(t *testing.T, srv *redistest.MiniServer) {
			t.Helper()
			srv.Do(t, "RPUSH", codec.QueueKey("job"), foreignHead)
		},
		"overdue waiter behind the head": func(t *testing.T, srv *redistest.MiniServer) {
			t.Helper()
			queueByHand(t, srv, "job", foreignHead, time.Now().Add(far))
			queueByHand(t, srv, "job", foreignTail, time.Now().Add(-time.Second))
		},
		"holder without a lease": func(t *testing.T, srv *redistest.MiniServer) {
			t.Helper()
			srv.Do(t, "HSET", "job", foreignOwner, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range testlevel.Part([]int{5, 1, 50}, 3, "") {
				synctest.Test(t, func(t *testing.T) {
					srv, client, calls := inBubble(t)
					block(t, srv)
					_, end := waitTogether(t, rfairlock.New(client, "job"), n)
					calls.during(time.Second)
					for range 10 {
						require.LessOrEqual(t, calls.during(time.Second), int64(2), "%d waiters", n)
					}
					beats := calls.beats.Load()
					require.LessOrEqual(t, calls.during(20*time.Second), int64(40), "pauses of at least half a second")
					require.LessOrEqual(t, calls.beats.Load()-beats, int64(21))
					end()
				})
			}
		})
	}
}

func TestU24DeadHeadSkippedByPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t)
		const left = 20 * time.Second // less than the grace of an eviction
		queueByHand(t, srv, "job", foreignHead, time.Now().Add(left))
		all, _ := waitTogether(t, rfairlock.New(client, "job"), 20)
		time.Sleep(left - time.Millisecond)
		for _, w := range all {
			w.stillWaits(t)
		}
		due := time.Now().Add(time.Millisecond)
		for _, w := range all {
			require.NoError(t, w.acquired(t, time.Hour).Unlock())
		}
		require.LessOrEqual(t, time.Since(due), 1250*time.Millisecond)
	})
}

func TestU29ProcessPollsOncePerCap(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t)
		holdByHand(t, srv, "job", time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		var all []*waiter
		for range testlevel.Rounds(50, 300) {
			all = append(all, await(ctx, rfairlock.New(client, "job")))
		}
		time.Sleep(time.Second)
		beats := calls.beats.Load()
		require.LessOrEqual(t, calls.during(50*time.Second), int64(5), "one attempt per poll cap")
		require.LessOrEqual(t, calls.beats.Load()-beats, int64(10), "one heartbeat per period")
		require.Len(t, queueOf(t, srv, "job"), len(all))
		cancel()
		synctest.Wait()
		require.Empty(t, queueOf(t, srv, "job"))
		require.Empty(t, deadlinesOf(t, srv, "job"))
	})
}

// The next waiter takes over the poll at the time it was due.
func TestU29PollingContinuesAfterPollerLeaves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t)
		holdByHand(t, srv, "job", time.Hour)
		l := rfairlock.New(client, "job")
		var leaves []context.CancelFunc
		for range 40 {
			ctx, cancel := context.WithCancel(t.Context())
			leaves = append(leaves, cancel)
			await(ctx, l)
			synctest.Wait()
		}
		stayer := await(t.Context(), l)
		time.Sleep(time.Second)
		synctest.Wait()
		before := calls.n.Load()
		for _, leave := range leaves { // a minute in all
			leave()
			time.Sleep(1490 * time.Millisecond) // never when a poll is due
		}
		synctest.Wait()
		polls := calls.n.Load() - before - int64(len(leaves))
		require.LessOrEqual(t, polls, int64(6))
		require.GreaterOrEqual(t, polls, int64(5))
		srv.Do(t, "DEL", "job")
		require.NoError(t, stayer.acquired(t, 10*time.Second).Unlock())
	})
}

func TestU21QueueOfDeletedLockAdvancesInOrder(t *testing.T) {
	t.Parallel()
	for _, limit := range []time.Duration{time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			srv, client, _ := inBubble(t, redlatch.WithPollCap(limit))
			other, _ := fakeClient(t, srv, redlatch.WithPollCap(limit))
			holdByHand(t, srv, "job", time.Hour)
			all, _ := waitTogether(t, rfairlock.New(client, "job"), 3)
			rest, _ := waitTogether(t, rfairlock.New(other, "job"), 2)
			time.Sleep(limit*5/2 + limit/10)
			srv.Do(t, "DEL", "job")
			deleted := time.Now()
			for i, w := range append(all, rest...) {
				hold := w.acquired(t, time.Minute)
				for _, later := range append(all, rest...)[i+1:] {
					later.stillWaits(t)
				}
				require.NoError(t, hold.Unlock())
			}
			require.LessOrEqual(t, time.Since(deleted), limit)
		})
	}
}

func TestU20WaiterAcquiresAfterDeadHoldersLease(t *testing.T) {
	const lease = 3 * time.Second
	synctest.Test(t, func(t *testing.T) {
		srv, client, _ := inBubble(t, noPoll())
		other, _ := fakeClient(t, srv, noPoll())
		holdByHand(t, srv, "job", lease)
		var all []*waiter
		for _, c := range []*redlatch.Client{client, client, other} {
			all = append(all, await(t.Context(), rfairlock.New(c, "job"), rlock.WithLease(lease)))
			synctest.Wait()
		}
		all[0].acquired(t, time.Minute)
		require.GreaterOrEqual(t, all[0].took, lease)
		require.LessOrEqual(t, all[0].took, lease+10*time.Millisecond)
		for _, w := range all[1:] { // the one before is not unlocked
			w.acquired(t, lease+10*time.Millisecond)
		}
	})
}

// The process's first waiter was moved to the end of the queue.
func TestPollerNotifiesNewHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pollCap = 2 * time.Second // before the first heartbeat
		srv, client, _ := inBubble(t, redlatch.WithPollCap(pollCap))
		holdByHand(t, srv, "job", time.Hour)
		all, _ := waitTogether(t, rfairlock.New(client, "job"), 3)
		queue := queueOf(t, srv, "job")
		srv.Do(t, "LREM", codec.QueueKey("job"), 0, queue[0])
		srv.Do(t, "RPUSH", codec.QueueKey("job"), queue[0])
		srv.Do(t, "DEL", "job")
		began := time.Now()
		hold := all[1].acquired(t, time.Minute)
		require.LessOrEqual(t, time.Since(began), pollCap)
		freed := time.Now()
		require.NoError(t, hold.Unlock())
		require.NoError(t, all[2].acquired(t, time.Minute).Unlock())
		require.NoError(t, all[0].acquired(t, time.Minute).Unlock())
		require.Zero(t, time.Since(freed))
	})
}

// The first waiter in the queue polls from then on.
func TestRemovedWaiterQueuesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, calls := inBubble(t)
		holdByHand(t, srv, "job", time.Hour)
		all, _ := waitTogether(t, rfairlock.New(client, "job"), 3)
		queue := queueOf(t, srv, "job")
		srv.Do(t, "LREM", codec.QueueKey("job"), 0, queue[0])
		srv.Do(t, "ZREM", codec.TimeoutKey("job"), queue[0])
		time.Sleep(11 * time.Second)
		synctest.Wait()
		require.Equal(t, []string{queue[1], queue[2], queue[0]}, queueOf(t, srv, "job"))
		require.LessOrEqual(t, calls.during(50*time.Second), int64(5), "still one poll for all")
		srv.Do(t, "DEL", "job")
		before := calls.n.Load()
		hold := all[1].acquired(t, time.Minute)
		require.Equal(t, before+1, calls.n.Load(), "the head polls")
		require.NoError(t, hold.Unlock())
		for _, i := range []int{2, 0} {
			require.NoError(t, all[i].acquired(t, time.Second).Unlock())
		}
	})
}
