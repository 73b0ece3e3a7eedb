package inspect

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/connect"
)

func serverOf(t *testing.T, s redistest.Target) *connect.Server {
	t.Helper()
	srv, err := connect.New(connect.Settings{Address: s.URL()})
	require.NoError(t, err)
	return srv
}

// addCircle adds "x A: B", "y a: A" and "z B", and a wait of a for z: a circle of threads and a hold of Redlatch.
func addCircle(t *testing.T, s redistest.Target) {
	t.Helper()
	for name, owners := range map[string]string{"x": "AB", "y": "aA", "z": "B"} {
		s.Do(t, "HSET", name, ownerNamed(owners[0]), 1)
		for _, waiter := range owners[1:] {
			s.Do(t, "RPUSH", codec.QueueKey(name), ownerNamed(byte(waiter)))
		}
	}
	s.Do(t, "SET", engine.NestedKey(ownerNamed('a')), "c 1 1 plain z")
	program.Subscribe(t, s, codec.LockChannel("z"))
}

func TestSearchFollowsOnlyWaitsOfHolders(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	addCircle(t, s)
	for i := range 300 {
		s.Do(t, "HSET", fmt.Sprint("other", i), java, 1)
		s.Do(t, "RPUSH", codec.QueueKey(fmt.Sprint("other", i)), java2)
	}
	s.Do(t, "CONFIG", "RESETSTAT")
	var f follower
	locks, err := f.follow(t.Context(), serverOf(t, s), []string{"y"})
	require.NoError(t, err)
	var names []string
	for _, l := range locks {
		names = append(names, l.Name)
	}
	require.Equal(t, []string{"y", "z", "x"}, names)
	require.Equal(t, []string{"a z B, B x A, A y a"}, shownCircles(FindCircles(locks, nobody)))
	require.EqualValues(t, 3, s.CommandStats(t)["hscan"])
}

func TestSearchesAreLimitedByCount(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for i := range 600 {
		s.Do(t, "SET", fmt.Sprint("key", i), 1)
	}
	for i := range 40 {
		s.Do(t, "RPUSH", codec.QueueKey("x"), fmt.Sprintf("71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:%d", i))
	}
	s.Do(t, "HSET", "x", ownerNamed('A'), 1)
	srv := serverOf(t, s)
	for _, f := range []follower{{queues: mostQueues}, {scanned: mostScanned}} {
		_, err := f.follow(t.Context(), srv, []string{"x"})
		require.ErrorIs(t, err, ErrCut)
	}
	for before, places := range map[int]int{0: 40, wholePlaces: CirclePlaces, mostPlaces: 0} {
		locks, err := (&scan{Request: Request{Conn: s.Dial(t), Labels: s.Dial(t), Places: 200}, places: before}).read(t.Context(), []string{"x"}, true)
		require.NoError(t, err)
		require.Len(t, locks[0].Places, places)
		require.NotEmpty(t, locks[0].Next)
	}
	var all Suspects
	for range mostSuspects {
		all.Add(lockSet("x A")[0])
	}
	require.False(t, all.cut)
	all.Add(lockSet("x a: b")[0])
	require.False(t, all.cut, "a hold of Redlatch that waits for nothing")
	all.Add(lockSet("x A")[0])
	require.True(t, all.cut)
	require.Len(t, all.locks, mostSuspects)
	_, err := all.Circles(t.Context(), srv)
	require.ErrorIs(t, err, ErrCut)
}
