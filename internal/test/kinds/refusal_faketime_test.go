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
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// refusals maps error replies to whether they are temporary. See the section "Refusals" in docs/reliability.md.
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

// eachRefusal runs a test in a bubble for each kind and refusal. With `make test`, it runs only some of these pairs.
func eachRefusal(t *testing.T, test func(t *testing.T, srv *embedded.Server, refusal string, passes bool, hold, wait enter)) {
	t.Helper()
	for _, pair := range pairs(t, objects, refusals) {
		kind, refusal := pair[0], pair[1]
		t.Run(kind+" "+refusal[:7], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := redistest.Mini(t, embedded.WithInProcess())
				holder, waiter := callers.InProcess(t, srv), callers.InProcess(t, srv, redlatch.WithPollCap(time.Second))
				test(t, srv.Server, refusal, refusals[refusal], objects[kind].hold(holder, "k"), objects[kind].wait(waiter, "k"))
			})
		})
	}
}

func TestWaiterSurvivesTransientRejections(t *testing.T) {
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

// A new call that gets a temporary refusal is retried for one command timeout. Other refusals are returned immediately.
func TestNewCallReturnsRefusalAfterOneCommandTimeout(t *testing.T) {
	eachRefusal(t, func(t *testing.T, srv *embedded.Server, refusal string, passes bool, hold, wait enter) {
		t.Helper()
		for _, call := range []enter{hold, wait} { // load the scripts
			leave, err := call(t.Context())
			require.NoError(t, err)
			require.NoError(t, leave())
		}
		srv.FailWith(refusal)
		began := time.Now()
		_, err := wait(t.Context())
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
					if refusal[:8] != "READONLY" { // after READONLY, the client reconnects, and PING fails
						require.ErrorAs(t, err, &server)
						require.Equal(t, refusal, server.Text)
						require.ErrorContains(t, err, "the lease was not renewed in time: the server rejected its renewal: redis: "+refusal)
					}
				}
				require.Regexp(t, "lock lost: the lease was not renewed in time.* owner="+hold.Owner().String()+".* error=.*"+refusal[:8], log.String())
				srv.Heal()
			})
		})
	}
}

// The server refuses renewals for a while, then accepts them, and then becomes unreachable.
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
