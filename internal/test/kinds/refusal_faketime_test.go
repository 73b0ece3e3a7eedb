package kinds_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/transport"
)

// refusals maps error replies to whether they can pass: see docs/reliability.md, Refusals.
var refusals = map[string]bool{
	"LOADING Redis is loading the dataset in memory":                               true,
	"BUSY Redis is busy running a script":                                          true,
	"MASTERDOWN Link with MASTER is down":                                          true,
	"READONLY You can't write against a read only replica.":                        true,
	"FAILOVER failover in progress":                                                true,
	"CLUSTERDOWN The cluster is down":                                              true,
	"TRYAGAIN Multiple keys request during rehashing of slot":                      true,
	"NOREPLICAS Not enough good replicas to write.":                                true,
	"MISCONF Redis is configured to save RDB snapshots, but it's currently unable": true,
	"OOM command not allowed when used memory > 'maxmemory'.":                      true,
	"ERR max number of clients reached":                                            true,

	"NOPERM User app has no permissions to run the 'evalsha' command": false,
	"NOAUTH Authentication required.":                                 false,
	"WRONGTYPE Operation against a key holding the wrong kind":        false,
	"ERR unknown command 'EVALSHA'":                                   false,
}

// enter acquires an object and returns the call that releases it.
type enter func(ctx context.Context) (leave func() error, err error)

// lockWith returns an enter for a call that returns the hold of a lock.
func lockWith[H interface{ Unlock() error }](call func(context.Context, ...rlock.Option) (H, error)) enter {
	return func(ctx context.Context) (func() error, error) {
		h, err := call(ctx)
		if err != nil {
			return nil, err
		}
		return h.Unlock, nil
	}
}

// waitable has, for each kind, a call of a holder and a call that waits for it.
var waitable = map[string]func(holder, waiter *redlatch.Client) (hold, wait enter){
	"plain": func(h, w *redlatch.Client) (enter, enter) {
		return lockWith(rlock.New(h, "k").Lock), lockWith(rlock.New(w, "k").Lock)
	},
	"given owner": func(h, w *redlatch.Client) (enter, enter) {
		return lockWith(rlock.New(h, "k").Lock), lockWith(func(ctx context.Context, _ ...rlock.Option) (*rlock.Hold, error) {
			return rlock.New(w, "k").Lock(ctx, rlock.WithOwner(redlatch.NewOwner(w.ID(), 1)))
		})
	},
	"fair": func(h, w *redlatch.Client) (enter, enter) {
		return lockWith(rfairlock.New(h, "k").Lock), lockWith(rfairlock.New(w, "k").Lock)
	},
	"fenced": func(h, w *redlatch.Client) (enter, enter) {
		return lockWith(rfencedlock.New(h, "k").Lock), lockWith(rfencedlock.New(w, "k").Lock)
	},
	"fenced fair": func(h, w *redlatch.Client) (enter, enter) {
		return lockWith(rfencedlock.NewFair(h, "k").Lock), lockWith(rfencedlock.NewFair(w, "k").Lock)
	},
	"read": func(h, w *redlatch.Client) (enter, enter) {
		return lockWith(rreadwritelock.New(h, "k").Write().Lock), lockWith(rreadwritelock.New(w, "k").Read().Lock)
	},
	"write": func(h, w *redlatch.Client) (enter, enter) {
		return lockWith(rreadwritelock.New(h, "k").Read().Lock), lockWith(rreadwritelock.New(w, "k").Write().Lock)
	},
	"multi": func(h, w *redlatch.Client) (enter, enter) {
		return lockWith(rlock.New(h, "k").Lock), lockWith(rmultilock.New(w, "j", "k").Lock)
	},
	"counter": func(h, w *redlatch.Client) (enter, enter) {
		of := func(s *rsemaphore.Semaphore) enter {
			return func(ctx context.Context) (func() error, error) {
				leave := func() error { return s.Release(context.WithoutCancel(ctx), 1) }
				return leave, s.Acquire(ctx, 1)
			}
		}
		return of(rsemaphore.New(h, "counter")), of(rsemaphore.New(w, "counter"))
	},
	"permits": func(h, w *redlatch.Client) (enter, enter) {
		of := func(s *rsemaphore.Expirable) enter {
			return func(ctx context.Context) (func() error, error) {
				hold, err := s.Acquire(ctx, 1)
				if err != nil {
					return nil, err
				}
				return hold.Release, nil
			}
		}
		return of(rsemaphore.NewExpirable(h, "permits")), of(rsemaphore.NewExpirable(w, "permits"))
	},
	"latch": func(h, w *redlatch.Client) (enter, enter) {
		closing := func(ctx context.Context) (func() error, error) {
			l := rlatch.New(h, "latch")
			_, err := l.TrySet(ctx, 1)
			return func() error { return l.CountDown(context.WithoutCancel(ctx)) }, err
		}
		return closing, func(ctx context.Context) (func() error, error) {
			return func() error { return nil }, rlatch.New(w, "latch").Wait(ctx)
		}
	},
}

// prepared returns a holder's client of a server whose semaphores have a permit.
func prepared(t *testing.T, srv *redistest.MiniServer) *redlatch.Client {
	t.Helper()
	c := callers.InProcess(t, srv)
	_, err := rsemaphore.New(c, "counter").TrySet(t.Context(), 1, 0)
	require.NoError(t, err)
	_, err = rsemaphore.NewExpirable(c, "permits").TrySetPermits(t.Context(), 1)
	require.NoError(t, err)
	return c
}

// eachRefusal runs a test for each refusal and each kind, in a bubble.
func eachRefusal(t *testing.T, test func(t *testing.T, srv *embedded.Server, refusal string, passes bool, hold, wait enter)) {
	t.Helper()
	for kind, pair := range waitable {
		for refusal, passes := range refusals {
			t.Run(kind+" "+refusal[:7], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					srv := redistest.Mini(t, embedded.WithInProcess())
					hold, wait := pair(prepared(t, srv), callers.InProcess(t, srv, redlatch.WithPollCap(time.Second)))
					test(t, srv.Server, refusal, passes, hold, wait)
				})
			})
		}
	}
}

func TestWaiterRidesOutRefusalsThatPass(t *testing.T) {
	eachRefusal(t, func(t *testing.T, srv *embedded.Server, refusal string, passes bool, hold, wait enter) {
		t.Helper()
		leave, err := hold(t.Context())
		require.NoError(t, err)
		came := make(chan error, 1)
		go func() {
			out, err := wait(t.Context())
			if err == nil {
				err = out()
			}
			came <- err
		}()
		synctest.Wait()
		srv.FailWith(refusal)
		time.Sleep(15 * time.Second)
		synctest.Wait()
		if !passes {
			require.ErrorContains(t, <-came, refusal)
			srv.Heal()
			require.NoError(t, leave())
			return
		}
		require.Empty(t, came, "it waits on")
		srv.Heal()
		require.NoError(t, leave())
		require.NoError(t, <-came)
	})
}

func TestWaiterTimeoutNamesRefusal(t *testing.T) {
	eachRefusal(t, func(t *testing.T, srv *embedded.Server, refusal string, passes bool, hold, wait enter) {
		t.Helper()
		if !passes {
			return
		}
		leave, err := hold(t.Context())
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		came := make(chan error, 1)
		go func() { came <- errOf(wait(ctx)) }()
		synctest.Wait()
		srv.FailWith(refusal)
		err = <-came
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded, "not before")
		require.ErrorContains(t, err, refusal)
		srv.Heal()
		require.NoError(t, leave())
	})
}

// A new call retries a refusal that can pass for one command timeout, and returns others immediately.
func TestNewCallReturnsRefusalAfterOneCommandTimeout(t *testing.T) {
	eachRefusal(t, func(t *testing.T, srv *embedded.Server, refusal string, passes bool, _, wait enter) {
		t.Helper()
		leave, err := wait(t.Context()) // connects and loads scripts
		require.NoError(t, err)
		require.NoError(t, leave())
		srv.FailWith(refusal)
		began := time.Now()
		_, err = wait(t.Context())
		require.ErrorContains(t, err, refusal)
		if passes {
			require.GreaterOrEqual(t, time.Since(began), 3*time.Second)
			require.Less(t, time.Since(began), 5*time.Second)
		} else {
			require.Zero(t, time.Since(began))
		}
		srv.Heal()
	})
}

func TestLossNamesRefusedRenewal(t *testing.T) {
	for refusal, passes := range refusals {
		if !passes {
			continue
		}
		t.Run(refusal[:7], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Mini(t, embedded.WithInProcess())
				var log faketransport.Log
				client := callers.InProcess(t, srv, redlatch.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				hold, err := rlock.New(client, "k").Lock(t.Context())
				require.NoError(t, err)
				ctx := hold.Context(t.Context())
				srv.FailWith(refusal)
				<-ctx.Done()
				synctest.Wait()
				for _, err := range []error{hold.Err(), context.Cause(ctx)} {
					require.ErrorIs(t, err, redlatch.ErrLost)
					require.ErrorIs(t, err, redlatch.LossNotRenewed)
					var server *transport.ServerError
					if refusal[:8] != "READONLY" { // the client reconnects, and PING fails
						require.ErrorAs(t, err, &server)
						require.Equal(t, refusal, server.Text)
						require.ErrorContains(t, err, "the lease was not renewed in time: the server refused to renew it: redis: "+refusal)
					}
				}
				require.Regexp(t, "lock lost: the lease was not renewed in time.* error=.*"+refusal[:8], log.String())
				srv.Heal()
			})
		})
	}
}

// The server refuses renewals for a while, then renews, and then disappears.
func TestLossDoesNotNameEarlierRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		hold, err := rlock.New(callers.InProcess(t, srv), "k").Lock(t.Context())
		require.NoError(t, err)
		srv.FailWith("NOREPLICAS Not enough good replicas to write.")
		time.Sleep(15 * time.Second)
		srv.Heal()
		time.Sleep(5 * time.Second)
		srv.Close()
		time.Sleep(time.Minute)
		require.Equal(t, redlatch.LossNotRenewed, hold.Err())
	})
}
