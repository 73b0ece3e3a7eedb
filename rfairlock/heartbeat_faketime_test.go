package rfairlock_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// listensByHand subscribes to the owner's channel.
func listensByHand(t *testing.T, srv *redistest.MiniServer, owner string) {
	t.Helper()
	require.NoError(t, redis.PubSubConn{Conn: srv.Dial(t)}.Subscribe(protocol.OwnerChannel("job", owner)))
}

// The lease is short and renewed, so the first deadlines pass while the lock is held.
func TestU25WaitersKeepPlacesDuringLongHold(t *testing.T) {
	t.Parallel()
	for _, processes := range testlevel.Part([]int{2, 1}, 2, "") {
		synctest.Test(t, func(t *testing.T) {
			ev := &evictions{}
			srv := redistest.Mini(t, embedded.WithInProcess())
			var clients []*redlatch.Client
			for range processes {
				clients = append(clients, hostOf(t, srv, 0, ev.observer()))
			}
			hold, err := rfairlock.New(clients[0], "job").TryLock(t.Context())
			require.NoError(t, err)
			all := inTurn(t.Context(), 6, clients...)
			before := queueOf(t, srv, "job")
			require.Len(t, before, 6)
			for range testlevel.Rounds(6, 20) {
				time.Sleep(time.Minute)
				require.Equal(t, before, queueOf(t, srv, "job"))
			}
			require.NoError(t, hold.Unlock())
			for i, w := range all {
				<-w.done
				require.NoError(t, w.err)
				require.Equal(t, before[i], w.hold.Owner().String())
				require.NoError(t, w.hold.Unlock())
			}
			require.Empty(t, ev.reported())
		})
	}
}

// Each wait is shorter than a heartbeat period, but the queue is never empty, so all deadlines are derived
// from the first one.
func TestU25ShortWaitersOfBusyQueueKeepOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		const processes = 5
		rounds := testlevel.Rounds(70, 300) // for longer than a deadline
		var order []int                     // guarded by the lock
		var all sync.WaitGroup
		for i := range processes {
			l := rfairlock.New(hostOf(t, srv, 0), "job")
			time.Sleep(100 * time.Millisecond) // so that they start in order
			all.Go(func() {
				for range rounds {
					h, err := l.Lock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					order = append(order, i)
					time.Sleep(900 * time.Millisecond)
					if err := h.Unlock(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		require.Len(t, order, processes*rounds)
		for n, i := range order {
			require.Equal(t, n%processes, i, "acquisition %d", n)
		}
	})
}

// Waiters of other clients are first in the queue, with a near deadline, and last, with a distant
// one.
func TestU23SkewedHeartbeatsKeepWaitersQueued(t *testing.T) {
	t.Parallel()
	for _, ahead := range testlevel.Part([]time.Duration{10 * time.Minute, -10 * time.Minute}, 2, "") {
		synctest.Test(t, func(t *testing.T) {
			ev := &evictions{}
			srv := redistest.Mini(t, embedded.WithInProcess())
			a := hostOf(t, srv, ahead, redlatch.WithServerTime(), ev.observer())
			b := hostOf(t, srv, ahead, redlatch.WithServerTime(), ev.observer())
			holdByHand(t, srv, "job", time.Hour)
			queueByHand(t, srv, "job", foreignHead, time.Now().Add(ahead+time.Minute))
			listensByHand(t, srv, foreignHead)
			ctx, cancel := context.WithCancel(t.Context())
			all := inTurn(ctx, 4, a, b)
			queueByHand(t, srv, "job", foreignTail, time.Now().Add(ahead+30*time.Minute))
			listensByHand(t, srv, foreignTail)
			before := queueOf(t, srv, "job")
			require.Len(t, before, 6)
			for range testlevel.Rounds(7, 10) {
				time.Sleep(time.Minute)
				require.Equal(t, before, queueOf(t, srv, "job"))
				for owner, deadline := range deadlinesOf(t, srv, "job") {
					left := time.UnixMilli(deadline).Sub(time.Now().Add(ahead))
					require.Positive(t, left, owner)
					require.Less(t, left, time.Hour+7*300*time.Second, owner)
				}
			}
			require.Empty(t, ev.reported())
			cancel()
			for _, w := range all {
				<-w.done
			}
		})
	}
}

func TestU23ClockSkewOnlyLogsWarning(t *testing.T) {
	t.Parallel()
	for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			logged, log := redistest.NewJournal()
			srv := redistest.Mini(t, embedded.WithInProcess())
			off, right := hostOf(t, srv, ahead, redlatch.WithLogger(log)), hostOf(t, srv, ahead, redlatch.WithServerTime())
			var inside, turns atomic.Int32
			var wg sync.WaitGroup
			over := time.Now().Add(time.Duration(testlevel.Rounds(75, 360)) * time.Second)
			for i := range 6 {
				l := rfairlock.New([]*redlatch.Client{off, right}[i%2], "job")
				wg.Go(func() {
					for time.Now().Before(over) {
						hold, err := l.Lock(t.Context(), rlock.WithLease(time.Minute))
						if !assert.NoError(t, err) {
							return
						}
						assert.Equal(t, int32(1), inside.Add(1))
						time.Sleep(3 * time.Second)
						inside.Add(-1)
						turns.Add(1)
						assert.NoError(t, hold.Unlock())
					}
				})
			}
			wg.Wait()
			require.Greater(t, turns.Load(), int32(20))
			require.Len(t, logged.Lines("clock differs from the server's"), 1)
		})
	}
}

// Three processes wait alternately, and a Redisson waiter is last. Places that are not kept are
// lost after 15 s.
func TestU25LiveWaitersKeepTheirQueueEntriesThroughFaults(t *testing.T) {
	t.Parallel()
	faults := map[string]func(srv *redistest.MiniServer, all []*process){
		"a process is paused": func(_ *redistest.MiniServer, all []*process) { all[0].pause(20 * time.Second) },
		"all are paused": func(_ *redistest.MiniServer, all []*process) {
			eachOf(all, func(p *process) { p.pause(8 * time.Second) })
		},
		"lost connections":     func(_ *redistest.MiniServer, all []*process) { eachOf(all, func(p *process) { p.disconnect(false) }) },
		"lost subscriptions":   func(srv *redistest.MiniServer, _ []*process) { srv.DropSubscribers() },
		"one cannot reconnect": func(_ *redistest.MiniServer, all []*process) { away(all[1:2], 5*time.Second) },
		"server restart":       func(_ *redistest.MiniServer, all []*process) { away(all, 3*time.Second) },
		"one is paused and others lose their connections": func(_ *redistest.MiniServer, all []*process) {
			all[0].pause(10 * time.Second)
			for range 4 {
				time.Sleep(time.Second)
				eachOf(all[1:], func(p *process) { p.disconnect(false) })
			}
		},
	}
	for _, name := range testlevel.Part(slices.Sorted(maps.Keys(faults)), 2, t.Name()) {
		fail := faults[name]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ev := &evictions{}
				srv := redistest.Mini(t, embedded.WithInProcess())
				hold := take(t, rfairlock.New(hostOf(t, srv, 0, redlatch.WithWatchdogTimeout(10*time.Second)), "job"))
				var all []*process
				for range 3 {
					all = append(all, newProcess(t, srv, ev.observer(), redlatch.WithFairWaitTimeout(15*time.Second), redlatch.WithPollCap(5*time.Second)))
				}
				inTurn(t.Context(), 6, all[0].client, all[1].client, all[2].client)
				queueByHand(t, srv, "job", foreignTail, time.Now().Add(time.Hour))
				before := queueOf(t, srv, "job")
				time.Sleep(20 * time.Second)
				fail(srv, all)
				time.Sleep(30 * time.Second)
				require.Equal(t, before[:6], queueOf(t, srv, "job")[:6])
				for _, e := range ev.reported() {
					require.Equal(t, foreignTail, e.Owner)
				}
				require.NoError(t, hold.Unlock())
			})
		})
	}
}

func eachOf(all []*process, do func(p *process)) {
	for _, p := range all {
		do(p)
	}
}

// away disconnects processes for d.
func away(all []*process, d time.Duration) {
	eachOf(all, func(p *process) { p.disconnect(true) })
	time.Sleep(d)
	eachOf(all, func(p *process) { p.disconnect(false) })
}

// farAway starts a server and a client that disagree about the time.
func farAway(t *testing.T, k *skew, opts ...redlatch.Option) (*redistest.MiniServer, *redlatch.Client) {
	t.Helper()
	srv := redistest.Mini(t, embedded.WithInProcess())
	calls := countTo(srv)
	calls.intercept = k.intercept
	return srv, over(t, calls, opts...)
}

// waitersByHand queues two waiters that are alive by the server's clock.
func waitersByHand(t *testing.T, srv *redistest.MiniServer, e *skew) map[string]int64 {
	t.Helper()
	now := time.Now().Add(e.ahead)
	queueByHand(t, srv, "job", foreignHead, now.Add(time.Minute))
	queueByHand(t, srv, "job", foreignTail, now.Add(2*time.Minute))
	return deadlinesOf(t, srv, "job")
}

// The server is slow to reply to TIME.
func TestU23SkewedHostWithServerTimeEvictsNobody(t *testing.T) {
	for _, ahead := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			e := &skew{ahead: ahead, slow: time.Second}
			srv, client := farAway(t, e, redlatch.WithServerTime())
			holdByHand(t, srv, "job", time.Hour)
			before := waitersByHand(t, srv, e)
			ctx, cancel := context.WithCancel(t.Context())
			all := map[*waiter]bool{}
			for range 10 {
				all[await(ctx, rfairlock.New(client, "job"), rlock.WithWait(time.Hour))] = true
			}
			time.Sleep(2 * time.Second)
			synctest.Wait()
			queue, after := queueOf(t, srv, "job"), deadlinesOf(t, srv, "job")
			require.Len(t, queue, 12)
			require.Equal(t, []string{foreignHead, foreignTail}, queue[:2])
			require.Equal(t, before[foreignHead], after[foreignHead])
			want := before[foreignTail] + time.Hour.Milliseconds()
			require.Equal(t, want, after[queue[2]], "neither expired nor hours ahead")
			require.Equal(t, int64(1), e.asked.Load())
			got, err := engine.EngineOf(client).Clock.Offset(t.Context())
			require.NoError(t, err)
			require.InDelta(t, ahead, got, float64(time.Second))
			cancel()
			for w := range all {
				<-w.done
			}
		})
	}
}

func TestU23ReleasesWithServerTimeEvictNobody(t *testing.T) {
	owner, err := codec.ParseOwner(foreignOwner)
	require.NoError(t, err)
	for name, act := range map[string]func(ctx context.Context, l *rlock.Lock) error{
		"force": func(ctx context.Context, l *rlock.Lock) error { _, err := l.ForceUnlock(ctx); return err },
		"as":    func(ctx context.Context, l *rlock.Lock) error { return l.UnlockAs(ctx, owner) },
		"resume": func(ctx context.Context, l *rlock.Lock) error {
			hold, err := l.Resume(ctx, owner)
			if err != nil {
				return err
			}
			return hold.Unlock()
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &skew{ahead: -10 * time.Minute, slow: time.Second}
				srv, client := farAway(t, e, redlatch.WithServerTime())
				holdByHand(t, srv, "job", time.Hour)
				before := waitersByHand(t, srv, e)
				require.NoError(t, act(t.Context(), rfairlock.New(client, "job")))
				require.False(t, locked(t, srv, "job"))
				require.Equal(t, before, deadlinesOf(t, srv, "job"))
				require.Len(t, queueOf(t, srv, "job"), 2)
			})
		})
	}
}

func TestLocalClockUsedByDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &skew{ahead: -10 * time.Minute}
		srv, client := farAway(t, e)
		require.NoError(t, take(t, rfairlock.New(client, "job")).Unlock())
		synctest.Wait()
		require.Equal(t, int64(1), e.asked.Load(), "the clocks are still compared")
		waitersByHand(t, srv, e) // dead, by this machine's clock
		require.NoError(t, take(t, rfairlock.New(client, "job")).Unlock())
		require.Empty(t, queueOf(t, srv, "job"))
	})
}

func TestClockSkewWarnedOnce(t *testing.T) {
	t.Parallel()
	const warning = "clock differs from the server's"
	for ahead, warnings := range map[time.Duration]int{
		0: 0, 900 * time.Millisecond: 0, -900 * time.Millisecond: 0, 1100 * time.Millisecond: 1, -time.Hour: 1,
	} {
		synctest.Test(t, func(t *testing.T) {
			logged, log := redistest.NewJournal()
			e := &skew{ahead: ahead}
			_, client := farAway(t, e, redlatch.WithLogger(log))
			l := rfairlock.New(client, "job")
			for range 25 {
				require.NoError(t, take(t, l).Unlock())
				time.Sleep(24 * time.Second)
			}
			synctest.Wait()
			require.Len(t, logged.Lines(warning), warnings)
			require.InDelta(t, 10, e.asked.Load(), 1, "once a minute while used")
			time.Sleep(time.Hour)
			require.InDelta(t, 10, e.asked.Load(), 1)
		})
	}
}
