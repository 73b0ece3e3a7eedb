package rlock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	inner "github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/test/observed"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// copying is a transport to a server whose replicas the test controls.
type copying struct {
	transport.Transport

	mu    sync.Mutex // guards the fields below
	after time.Duration
	have  int64
	away  bool
	calls int // of Replicate
}

func (c *copying) Start(call *transport.Call, done transport.Done) {
	c.mu.Lock()
	away := c.away
	c.mu.Unlock()
	if away {
		done(nil, transport.ErrNotSent)
		return
	}
	c.Transport.Start(call, done)
}

func (c *copying) Replicate(call *transport.Call, _ int, timeout time.Duration, done func(any, int64, error)) {
	c.mu.Lock()
	c.calls++
	after, have := min(c.after, timeout), c.have
	if c.after > timeout {
		have = 0
	}
	c.mu.Unlock()
	c.Transport.Start(call, func(reply any, err error) {
		time.AfterFunc(after, func() { done(reply, have, err) })
	})
}

// answers sets when and how many replicas acknowledge.
func (c *copying) answers(after time.Duration, have int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.after, c.have = after, have
}

func (c *copying) isAway(away bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.away = away
}

func copied(t *testing.T, timeout time.Duration, opts ...redlatch.Option) (*redistest.MiniServer, *redlatch.Client, *copying) {
	t.Helper()
	srv := redistest.Mini(t, embedded.WithInProcess())
	c := &copying{Transport: redigoTransport(srv), have: 1}
	return srv, over(t, c, append(opts, redlatch.WithReplicaSync(1, timeout))...), c
}

func TestLeaseStartsBeforeReplicaWait(t *testing.T) {
	for kind, lock := range kinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client, replica := copied(t, 10*time.Second)
				replica.answers(4*time.Second, 1)
				began := time.Now()
				hold := take(t, lock(client, "job"), rlock.WithLease(20*time.Second))
				require.Equal(t, 4*time.Second, time.Since(began))
				require.Equal(t, 15*time.Second, hold.Remaining(), "20 s, less the margin and the wait")
				require.Equal(t, 16*time.Second, ttl(t, srv, "job"), "it was not extended")
				require.NoError(t, hold.Unlock())
				require.Empty(t, keysLike(t, srv, "*"))
			})
		})
	}
}

func TestOnlyAcquireWaitsForReplicas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client, replica := copied(t, time.Second)
		l := rlock.New(client, "job")
		hold := take(t, l)
		require.NoError(t, again(t, l, hold).Unlock())
		owner, err := hold.HandOver()
		require.NoError(t, err)
		resumed, err := l.Resume(t.Context(), owner)
		require.NoError(t, err)
		require.NoError(t, resumed.Unlock())
		require.Equal(t, 1, replica.calls)
	})
}

func TestUnreplicatedLockReleaseWakesWaiters(t *testing.T) {
	for kind, lock := range kinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client, replica := copied(t, 3*time.Second, noPoll())
				replica.answers(time.Hour, 1)
				refused := await(t.Context(), lock(client, "job"))
				synctest.Wait()
				there := await(t.Context(), lock(fakeClient(t, srv, noPoll()), "job"))
				require.ErrorIs(t, refused.failed(t, soon), redlatch.ErrNotReplicated)
				require.NoError(t, there.acquired(t, time.Second).Unlock())
			})
		})
	}
}

func TestHoldRenewedDuringReplicaWait(t *testing.T) {
	t.Parallel()
	for kind, lock := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv, client, replica := copied(t, time.Minute)
				replica.answers(50*time.Second, 1)
				hold := take(t, lock(client, "job"), rlock.WithWatchdog(3*time.Second))
				require.NoError(t, hold.Err())
				require.Greater(t, ttl(t, srv, "job"), 1900*time.Millisecond)
				require.NoError(t, hold.Unlock())
			})
		})
	}
}

func TestHoldExpiredDuringReplicaWaitNotReturned(t *testing.T) {
	t.Parallel()
	for kind, lock := range kinds {
		for what, opt := range map[string]rlock.Option{
			"lease": rlock.WithLease(2 * time.Second), "maximum": rlock.WithMaxHold(2 * time.Second), "taken": rlock.WithWatchdog(3 * time.Second),
		} {
			t.Run(kind+" "+what, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := &witness{}
					var opts []redlatch.Option
					if kind == "fair" {
						opts = append(opts, redlatch.WithObserver(observed.Outcomes(w.see))) // the result is the same without one
					}
					srv, client, replica := copied(t, 10*time.Second, opts...)
					replica.answers(4*time.Second, 1)
					tried := await(t.Context(), lock(client, "job"), opt)
					synctest.Wait()
					if what == "taken" {
						srv.Do(t, "DEL", "job")
					}
					err := tried.failed(t, time.Minute)
					require.ErrorIs(t, err, redlatch.ErrNotReplicated)
					require.NotErrorIs(t, err, redlatch.ErrLost, "no caller had the hold")
					synctest.Wait()
					require.Empty(t, keysLike(t, srv, "*"))
					require.Empty(t, endings(w), "its start was not reported")
					replica.answers(0, 1)
					require.NoError(t, take(t, lock(client, "job")).Unlock())
				})
			})
		}
	}
}

func endings(w *witness) (reported []any) {
	for _, e := range w.since() {
		switch e.(type) {
		case redlatch.Ended, redlatch.Released, redlatch.Acquired:
			reported = append(reported, e)
		}
	}
	return reported
}

func TestObserverReportsOnlyReplicatedHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &witness{}
		_, client, replica := copied(t, time.Second, redlatch.WithObserver(observed.Outcomes(w.see)))
		replica.answers(time.Hour, 1)
		l := rlock.New(client, "job")
		_, err := l.TryLock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrNotReplicated)
		require.Equal(t, []any{
			redlatch.NotAcquired{Op: "try-lock", Name: "job", Kind: "plain", Wait: time.Second, Attempts: 1, Outcome: "failed", Err: err},
		}, w.since())
		replica.answers(0, 1)
		hold := take(t, l)
		require.NoError(t, hold.Unlock())
		require.Len(t, endings(w), 3)
	})
}

func TestCanceledReplicaWaitCountsAsFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &witness{}
		_, client, replica := copied(t, time.Minute, redlatch.WithObserver(observed.Outcomes(w.see)))
		replica.answers(time.Hour, 1)
		ctx, cancel := context.WithCancel(t.Context())
		tried := await(ctx, rlock.New(client, "job"))
		synctest.Wait()
		cancel()
		err := tried.failed(t, time.Minute)
		require.ErrorIs(t, err, redlatch.ErrNotReplicated)
		require.ErrorIs(t, err, context.Canceled)
		event, _ := w.since()[0].(redlatch.NotAcquired)
		require.Equal(t, err, event.Err)
		require.Equal(t, "failed", event.Outcome)
	})
}

func TestUnreplicatedLockPassesTurn(t *testing.T) {
	for kind, lock := range kinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client, replica := copied(t, time.Second, noPoll())
				replica.answers(time.Hour, 1)
				began := time.Now()
				var all []*waiter
				for range 5 {
					all = append(all, await(t.Context(), lock(client, "job")))
				}
				for _, w := range all {
					require.ErrorIs(t, w.failed(t, time.Minute), redlatch.ErrNotReplicated)
				}
				require.Less(t, time.Since(began), 6*time.Second, "sequentially, without pauses")
				synctest.Wait()
				require.Empty(t, keysLike(t, srv, "*"))
			})
		})
	}
}

func TestLockReleasedAfterOutageDuringReplicaWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, replica := copied(t, time.Second)
		replica.answers(500*time.Millisecond, 0)
		tried := await(t.Context(), rlock.New(client, "job"))
		synctest.Wait()
		require.True(t, locked(t, srv, "job"))
		replica.isAway(true)
		err := tried.failed(t, time.Minute)
		require.ErrorIs(t, err, redlatch.ErrNotReplicated)
		time.Sleep(10 * time.Second)
		require.True(t, locked(t, srv, "job"))
		replica.isAway(false)
		time.Sleep(2 * time.Second)
		require.Empty(t, keysLike(t, srv, "*"))
	})
}

func TestFailedAcquireKeepsOtherHoldOfOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client, replica := copied(t, time.Second)
		traveller, err := codec.ParseOwner(foreignOwner)
		require.NoError(t, err)
		l := rlock.New(client, "job")
		// The two holds share the owner, also after failed acquisitions.
		long := take(t, l, rlock.WithOwner(traveller), rlock.WithLease(time.Minute))
		for range 3 {
			replica.answers(time.Hour, 1)
			_, err = l.TryLock(t.Context(), rlock.WithOwner(traveller))
			require.ErrorIs(t, err, redlatch.ErrNotReplicated)
		}
		replica.answers(0, 1)
		short := take(t, l, rlock.WithOwner(traveller), rlock.WithLease(5*time.Second))
		require.NoError(t, short.Unlock())
		require.Greater(t, ttl(t, srv, "job"), 50*time.Second)
		require.NoError(t, long.Unlock())
	})
}

func TestCallerCanceledDuringReplicaWaitLeavesNoLock(t *testing.T) {
	for what, leave := range map[string]struct {
		opts []rlock.Option
		is   []error
		end  func(cancel context.CancelFunc, c *redlatch.Client)
	}{
		"context": {nil, []error{context.Canceled}, func(cancel context.CancelFunc, _ *redlatch.Client) { cancel() }},
		"wait":    {[]rlock.Option{rlock.WithWait(2 * time.Second)}, nil, func(context.CancelFunc, *redlatch.Client) {}},
		"owner": {[]rlock.Option{rlock.WithOwner(newOwner())}, []error{context.Canceled},
			func(cancel context.CancelFunc, _ *redlatch.Client) { cancel() }},
		"close": {nil, []error{redlatch.ErrClosed}, func(_ context.CancelFunc, c *redlatch.Client) { _ = c.Close() }},
	} {
		for kind, lock := range kinds {
			t.Run(kind+" "+what, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv, client, replica := copied(t, time.Hour)
					replica.answers(2*time.Hour, 1)
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					w := await(ctx, lock(client, "job"), leave.opts...)
					time.Sleep(time.Second)
					require.True(t, locked(t, srv, "job"))
					w.stillWaits(t)
					leave.end(cancel, client)
					err := w.failed(t, 2*time.Second)
					require.ErrorIs(t, err, redlatch.ErrNotReplicated)
					for _, is := range leave.is {
						require.ErrorIs(t, err, is)
					}
					time.Sleep(20 * time.Second) // until the latches expire
					require.Empty(t, keysLike(t, srv, "*"))
				})
			})
		}
	}
}

func TestGivenOwnerUndoesOnlyFailedAcquire(t *testing.T) {
	for kind, lock := range kinds {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client, replica := copied(t, time.Second)
				l, owner := lock(client, "job"), newOwner()
				hold := take(t, l, rlock.WithOwner(owner))
				replica.answers(time.Hour, 1)
				for range 2 {
					_, err := l.TryLock(t.Context(), rlock.WithOwner(owner))
					require.ErrorIs(t, err, redlatch.ErrNotReplicated)
					require.Equal(t, map[string]string{inner.Of(l).Text(owner): "1"}, holders(t, srv, "job"))
				}
				require.NoError(t, hold.Err())
				require.NoError(t, hold.Unlock())
				require.False(t, locked(t, srv, "job"))
			})
		})
	}
}
