package bench

import (
	"encoding/json"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

func TestSpreadIsThatOfTheTimes(t *testing.T) {
	t.Parallel()
	require.Equal(t, spread{}, spreadOf(nil))
	times := make([]time.Duration, 0, 100)
	for i := range 100 {
		times = append(times, time.Duration(100-i)*time.Millisecond)
	}
	s := spreadOf(times)
	require.Equal(t, spread{P50: micros(51 * time.Millisecond), P99: micros(100 * time.Millisecond), Count: 100}, s)
	text, err := json.Marshal(s)
	require.NoError(t, err)
	require.JSONEq(t, `{"p50_us":51000,"p99_us":100000,"count":100}`, string(text))
}

func TestRunMeasuresEverythingOnAnyServer(t *testing.T) {
	testlevel.All(t, "4 s of load on each server")
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		srv, err := connect.New(connect.Settings{Address: s.URL()})
		require.NoError(t, err)
		res, err := measure(t.Context(), srv, "app:", 4*time.Second) // a busy machine counts little in a part of it
		require.NoError(t, err)
		require.Positive(t, res.PairsOfOne)
		require.Positive(t, res.PairsOfMany)
		require.Positive(t, res.HandOvers)
		require.Positive(t, res.WakeUp.Count)
		require.GreaterOrEqual(t, res.WakeUp.P99, res.WakeUp.P50)
		require.Equal(t, trips, res.Trip.Count)
		require.EqualValues(t, 0, s.Do(t, "DBSIZE"), "something is left on the server")
	})
}

func TestBenchReportsALostLockAsSuch(t *testing.T) {
	t.Parallel()
	s := redistest.Mini(t)
	srv, err := connect.New(connect.Settings{Address: s.URL()})
	require.NoError(t, err)
	client, err := srv.Open(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, client.Close()) }()
	r := &run{ctx: t.Context(), part: time.Minute, clients: [2]*redlatch.Client{client, client}}
	_, err = r.runCallers(1, func(int) string { return "one" }, func(int) { s.Do(t, "DEL", "one") })
	err = explain(srv, err)
	require.ErrorIs(t, err, redlatch.ErrLost)
	require.ErrorContains(t, err, srv.String()+": ")
	require.NotContains(t, err.Error(), "cannot reach")
	require.ErrorContains(t, explain(srv, io.EOF), "cannot reach Redis at ")
}
