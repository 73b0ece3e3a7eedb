package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

func TestInspectReportsTheOwnerInOneRoundTrip(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, srv redistest.Target) {
		t.Helper()
		l := rlock.New(connect(t, srv.URL()), redistest.Key(t))
		inspect := func() *admin.Inspection {
			t.Helper()
			in, err := admin.Inspect(t.Context(), l)
			require.NoError(t, err)
			require.Equal(t, l.Name(), in.Name)
			require.Equal(t, "plain", in.Kind)
			return in
		}
		in := inspect()
		require.Empty(t, in.Holders)
		require.Zero(t, in.TTL)

		hold := take(t, l)
		inner, err := l.Lock(hold.Context(t.Context()))
		require.NoError(t, err)
		in = inspect()
		require.NotEmpty(t, in.Holders)
		require.Equal(t, []admin.Holder{{Owner: hold.Owner(), Text: hold.Owner().String(), Count: 2, CountText: "2"}}, in.Holders)
		require.InDelta(t, 30, in.TTL.Seconds(), 8)

		srv.Do(t, "PERSIST", l.Name())
		require.Equal(t, redlatch.NoTTL, inspect().TTL)
		require.NoError(t, inner.Unlock())
		require.NoError(t, hold.Unlock())
	})
}

func TestInspectCostsOneScript(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	l := rlock.New(connect(t, srv.URL()), redistest.Key(t))
	_, err := admin.Inspect(t.Context(), l) // the server knows the script
	require.NoError(t, err)
	srv.Do(t, "CONFIG", "RESETSTAT")
	_, err = admin.Inspect(t.Context(), l)
	require.NoError(t, err)
	scripts, all := commands(t, srv)
	require.EqualValues(t, 1, scripts)
	require.EqualValues(t, 3, all, "with what the script runs")
}

func TestInspectShowsWhatOthersHold(t *testing.T) {
	t.Parallel()
	srv, client := onShared(t)
	l := rlock.New(client, redistest.Key(t))
	srv.Do(t, "HSET", l.Name(), "mode", "11")
	in, err := admin.Inspect(t.Context(), l)
	require.NoError(t, err)
	require.Equal(t, []admin.Holder{{Text: "mode", Count: 11, CountText: "11"}}, in.Holders)
	srv.Do(t, "HSET", l.Name(), "mode", "write")
	in, err = admin.Inspect(t.Context(), l)
	require.NoError(t, err)
	require.Equal(t, []admin.Holder{{Text: "mode", CountText: "write"}}, in.Holders)
	srv.Do(t, "DEL", l.Name())
	srv.Do(t, "SET", l.Name(), "no lock")
	_, err = admin.Inspect(t.Context(), l)
	requireOnly(t, err, "inspect", l.Name(), redlatch.ErrWrongType)
}

// A rejected caller gets the holder, without another round trip.
func TestRefusalNamesTheHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, theirs := inBubble(t)
		calls := &counting{Transport: redigoTransport(srv)}
		ours := rlock.New(overTransport(t, calls), "job")
		hold := take(t, rlock.New(theirs, "job"))
		reported := func(op string, err error) {
			t.Helper()
			details := requireOnly(t, err, op, "job", redlatch.ErrNotAcquired)
			require.Equal(t, hold.Owner(), details.Holder)
			require.Greater(t, details.TTL, 19*time.Second)
			require.ErrorContains(t, err, hold.Owner().String())
		}
		before := calls.n.Load()
		_, err := ours.TryLock(t.Context())
		reported("trylock", err)
		require.EqualValues(t, 1, calls.n.Load()-before)
		_, err = ours.Lock(t.Context(), rlock.WithWait(time.Second))
		reported("lock", err)
		// A caller in the local queue gets the holder, too, and sends nothing.
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		first := await(ctx, ours)
		time.Sleep(time.Second)
		before = calls.n.Load()
		_, err = ours.TryLock(t.Context())
		reported("trylock", err)
		_, err = ours.Lock(t.Context(), rlock.WithWait(time.Second))
		reported("lock", err)
		require.Equal(t, before, calls.n.Load())
		leave()
		require.ErrorContains(t, first.failed(t, soon), hold.Owner().String())
		require.NoError(t, hold.Unlock())
		_, err = ours.TryLock(t.Context(), rlock.WithLease(0))
		require.Zero(t, requireOnly(t, err, "trylock", "job", redlatch.ErrInvalid).Holder, "no server was asked")
	})
}
