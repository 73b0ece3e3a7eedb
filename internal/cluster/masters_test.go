package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/transport"
)

func addrs(t *testing.T, w *world) (all []string) {
	t.Helper()
	masters, err := w.Masters(t.Context())
	require.NoError(t, err)
	for _, m := range masters {
		all = append(all, m.Addr())
	}
	return all
}

func TestACallOnAMasterGoesNowhereElse(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		masters, err := w.Masters(t.Context()) // the first thing that is asked of it
		require.NoError(t, err)
		require.Len(t, masters, 2)
		for _, m := range masters {
			_, err := mux.Do(t.Context(), m, &transport.Call{Command: "PING"})
			require.NoError(t, err)
			_, err = mux.Do(t.Context(), m, incr(key))
			if m.Addr() == one {
				require.NoError(t, err)
			} else {
				require.True(t, transport.IsCode(err, "MOVED"), "%v", err)
			}
			require.NoError(t, m.Close())
		}
		w.do(func() {
			for _, addr := range []string{one, two} {
				assert.Equal(t, 1, count(w.servers[addr].asked, "INCR"), addr)
			}
		})
		w.requireIncr(key, 2)
	})
}

func TestAClosedClusterHasNoMasters(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		w.do(func() { w.servers[one].silent, w.servers[two].silent = true, true })
		waiter := make(chan error, 1)
		go func() {
			_, err := w.Masters(t.Context())
			waiter <- err
		}()
		synctest.Wait()
		require.NoError(t, w.Close())
		require.ErrorIs(t, <-waiter, transport.ErrClosed)
		_, err := w.Masters(t.Context())
		require.ErrorIs(t, err, transport.ErrClosed)
	})
}

func TestMastersThatFailAreLookedForAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		const three = "10.0.0.3:1"
		require.ElementsMatch(t, []string{one, two}, addrs(t, w))
		w.do(func() { w.add(three) })
		w.takeOver(one, three)
		masters, err := w.Masters(t.Context())
		require.NoError(t, err)
		for _, m := range masters {
			_, _ = mux.Do(t.Context(), m, incr(key)) // sent elsewhere
		}
		time.Sleep(time.Second)
		require.ElementsMatch(t, []string{three, two}, addrs(t, w))
		w.kill(three)
		masters, err = w.Masters(t.Context())
		require.NoError(t, err)
		for _, m := range masters {
			if m.Addr() == three {
				_, err = mux.Do(t.Context(), m, &transport.Call{Command: "PING"})
				require.Error(t, err)
			}
		}
		w.takeOver(three, two)
		for range 3 {
			for _, m := range masters {
				_, _ = mux.Do(t.Context(), m, &transport.Call{Command: "PING"})
			}
			time.Sleep(time.Second)
		}
		require.Equal(t, []string{two}, addrs(t, w))
	})
}

func TestCallForAnyNodeSkipsMastersThatAreDown(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		var node *redisconn.NodeError
		require.Len(t, addrs(t, w), 2)
		for _, down := range []string{one, two} {
			w.kill(down)
			synctest.Wait()
			_, err := w.incr(key)
			require.ErrorAs(t, err, &node, "%v", err)
			require.Equal(t, one, node.Addr)
			require.ErrorContains(t, err, one)
			_, err = mux.Do(t.Context(), w, &transport.Call{Command: "PING"})
			if down == one {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, transport.ErrNotSent)
			require.ErrorAs(t, err, &node, "%v", err)
			require.Contains(t, []string{one, two}, node.Addr)
		}
	})
}

// Each span costs time proportional to the number of slots or masters.
func TestMoreSpansThanSlotsAreABadReply(t *testing.T) {
	t.Parallel()
	reply := []any{}
	for i := range slots {
		reply = append(reply, []any{int64(i), int64(i), []any{[]byte("10.0.0.1"), int64(i + 1)}})
	}
	masters, err := Masters(reply, one)
	require.NoError(t, err)
	require.Len(t, masters, slots)
	_, err = Masters(append(reply, reply[0]), one)
	require.ErrorIs(t, err, transport.ErrBadReply)
}
