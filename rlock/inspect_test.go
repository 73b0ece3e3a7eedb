package rlock_test

import (
	"context"
	"testing"
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

// A refused caller learns which owner holds the lock, without another round
// trip.
func TestRefusalNamesTheHolder(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	theirs := rlock.New(connect(t, srv.URL()), redistest.Key(t))
	ours := rlock.New(connect(t, srv.URL()), theirs.Name())
	hold := take(t, theirs)
	reported := func(err error) {
		t.Helper()
		var details *redlatch.LockError
		require.ErrorAs(t, err, &details)
		require.ErrorIs(t, err, redlatch.ErrNotAcquired)
		require.Equal(t, hold.Owner(), details.Holder)
		require.Greater(t, details.TTL, 20*time.Second)
		require.ErrorContains(t, err, hold.Owner().String())
	}
	srv.Do(t, "CONFIG", "RESETSTAT")
	_, err := ours.TryLock(t.Context())
	reported(err)
	scripts, all := commands(t, srv)
	require.EqualValues(t, 1, scripts)
	require.EqualValues(t, 5, all, "with what the script runs")
	waits := await(t.Context(), ours, rlock.WithWait(refusal))
	ctx, cancel := context.WithTimeout(t.Context(), refusal)
	defer cancel()
	_, err = rlock.New(connect(t, srv.URL()), theirs.Name()).Lock(ctx) // at the same time
	reported(err)
	reported(waits.failed(t, soon))
	// And from the local queue of its process, without asking.
	until(t, soon, "those before have gone", func() bool { return listeners(t, srv, ours.Name()) == 0 })
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	first := await(ctx, ours)
	awaitWaiters(t, srv, ours.Name())
	_, err = ours.TryLock(t.Context())
	reported(err)
	_, err = ours.Lock(t.Context(), rlock.WithWait(refusal))
	reported(err)
	leave()
	reported(first.failed(t, soon))
	require.NoError(t, hold.Unlock())
	_, err = ours.TryLock(t.Context(), rlock.WithLease(0))
	var details *redlatch.LockError
	require.ErrorAs(t, err, &details)
	require.Zero(t, details.Holder, "no server was asked")
}
