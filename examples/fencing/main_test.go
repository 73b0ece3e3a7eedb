package main

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestResourceRejectsWorkerWithLostLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	orders := &table{rows: map[string]order{"42": {"paid", 1}}}
	require.NoError(t, run(t.Context(), s.URL(), orders))
	require.Equal(t, order{"shipped by B", 2}, orders.read("42"))
	require.EqualValues(t, 0, s.Do(t, "EXISTS", "fencing-example:42"))
}

func TestAcceptedLateWorkerIsError(t *testing.T) {
	t.Parallel()
	require.Error(t, verdict(nil))
	require.ErrorIs(t, verdict(redlatch.ErrLost), redlatch.ErrLost)
	require.NoError(t, verdict(errors.Join(errStale, redlatch.ErrLost)))
}
