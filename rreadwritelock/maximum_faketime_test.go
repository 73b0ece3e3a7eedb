package rreadwritelock_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/transport"
)

// fakeClient is a client of a server inside a synctest bubble.
func fakeClient(t *testing.T, srv *redistest.MiniServer, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	c, err := redlatch.New(srv.Server.Dial, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// overTransport is one over what wrap makes of its transport.
func overTransport(t *testing.T, srv *redistest.MiniServer, wrap func(transport.Transport) transport.Transport) *redlatch.Client {
	t.Helper()
	c, err := redlatch.NewWithTransport(wrap(redisconn.NewRedigo(redisconn.Config{
		Dial: srv.Server.Dial, Command: 3 * time.Second, Lease: 30 * time.Second,
		DialTimeout: 5 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// A writer comes to its maximum while it enters as a reader: it leaves its role to its lease, as ever.
func TestAWriterAtItsMaximumLeavesTheLockToTheReadThatItIsAboutToGet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		tr := &faketransport.Distant{}
		t.Cleanup(tr.Wait)
		other := fakeClient(t, srv)
		client := overTransport(t, srv, func(near transport.Transport) transport.Transport {
			tr.Transport = near
			return tr
		})
		rw := rreadwritelock.New(client, "job")
		w := take(t, rw.Write(), rlock.WithMaxHold(time.Second))
		ctx := context.WithoutCancel(w.Context(t.Context()))
		time.Sleep(920 * time.Millisecond)
		r, err := rw.Read().Lock(ctx)
		require.NoError(t, err)
		require.ErrorIs(t, w.Err(), redlatch.ErrMaxHold)
		time.Sleep(2 * time.Minute) // the writer's lease is over, and the reader's renewed
		require.NoError(t, r.Err())
		beside, err := rreadwritelock.New(other, "job").Read().TryLock(t.Context())
		require.NoError(t, err, "there are readers only")
		unlock(t, beside, r)
	})
}

// A writer at its maximum had a read with a longer lease, which the lock still has: the lock follows one
// lease of the writer later.
func TestAWriterAtItsMaximumDoesNotStayForTheLeaseOfAReadThatItHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		client, other := fakeClient(t, srv), fakeClient(t, srv)
		rw := rreadwritelock.New(client, "job")
		w := take(t, rw.Write(), rlock.WithMaxHold(time.Second))
		r, err := rw.Read().Lock(w.Context(t.Context()), rlock.WithLease(time.Hour))
		require.NoError(t, err)
		unlock(t, r)
		time.Sleep(time.Minute)
		require.ErrorIs(t, w.Err(), redlatch.ErrMaxHold)
		beside, err := rreadwritelock.New(other, "job").Read().TryLock(t.Context())
		require.NoError(t, err, "the writer's lease is over")
		unlock(t, beside)
	})
}
