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

func addrs(w *world) (all []string) {
	w.Helper()
	masters, err := w.Masters(w.Context())
	require.NoError(w, err)
	for _, m := range masters {
		all = append(all, m.Addr())
	}
	return all
}

func TestCallOnMasterIsNotRedirected(t *testing.T) {
	inWorld(t, func(w *world) {
		masters, err := w.Masters(w.Context()) // its first query
		require.NoError(w, err)
		require.Len(w, masters, 2)
		for _, m := range masters {
			_, err := mux.Do(w.Context(), m, &transport.Call{Command: "PING"})
			require.NoError(w, err)
			_, err = mux.Do(w.Context(), m, incr(key))
			if m.Addr() == one {
				require.NoError(w, err)
			} else {
				require.True(w, transport.IsCode(err, "MOVED"), "%v", err)
			}
			require.NoError(w, m.Close())
		}
		w.do(func() {
			for _, addr := range []string{one, two} {
				assert.Equal(w, 1, count(w.servers[addr].asked, "INCR"), addr)
			}
		})
		w.requireIncr(key, 2)
	})
}

func TestClosedClusterHasNoMasters(t *testing.T) {
	inWorld(t, func(w *world) {
		w.do(func() { w.servers[one].silent, w.servers[two].silent = true, true })
		waiter := make(chan error, 1)
		go func() {
			_, err := w.Masters(w.Context())
			waiter <- err
		}()
		synctest.Wait()
		require.NoError(w, w.Close())
		require.ErrorIs(w, <-waiter, transport.ErrClosed)
		_, err := w.Masters(w.Context())
		require.ErrorIs(w, err, transport.ErrClosed)
	})
}

func TestFailedMastersTriggerRefresh(t *testing.T) {
	inWorld(t, func(w *world) {
		const three = "10.0.0.3:1"
		require.ElementsMatch(w, []string{one, two}, addrs(w))
		w.do(func() { w.add(three) })
		w.takeOver(one, three)
		masters, err := w.Masters(w.Context())
		require.NoError(w, err)
		for _, m := range masters {
			_, _ = mux.Do(w.Context(), m, incr(key)) // sent elsewhere
		}
		time.Sleep(time.Second)
		require.ElementsMatch(w, []string{three, two}, addrs(w))
		w.kill(three)
		masters, err = w.Masters(w.Context())
		require.NoError(w, err)
		for _, m := range masters {
			if m.Addr() == three {
				_, err = mux.Do(w.Context(), m, &transport.Call{Command: "PING"})
				require.Error(w, err)
			}
		}
		w.takeOver(three, two)
		for range 3 {
			for _, m := range masters {
				_, _ = mux.Do(w.Context(), m, &transport.Call{Command: "PING"})
			}
			time.Sleep(time.Second)
		}
		require.Equal(w, []string{two}, addrs(w))
	})
}

func TestCallForAnyNodeSkipsDownMasters(t *testing.T) {
	inWorld(t, func(w *world) {
		var node *redisconn.NodeError
		require.Len(w, addrs(w), 2)
		for _, down := range []string{one, two} {
			w.kill(down)
			synctest.Wait()
			_, err := w.incr(key)
			require.ErrorAs(w, err, &node, "%v", err)
			require.Equal(w, one, node.Addr)
			require.ErrorContains(w, err, one)
			_, err = mux.Do(w.Context(), w, &transport.Call{Command: "PING"})
			if down == one {
				require.NoError(w, err)
				continue
			}
			require.ErrorIs(w, err, transport.ErrNotSent)
			require.ErrorAs(w, err, &node, "%v", err)
			require.Contains(w, []string{one, two}, node.Addr)
		}
	})
}

// Each span costs time proportional to the number of slots or masters.
func TestMoreSpansThanSlotsIsBadReply(t *testing.T) {
	t.Parallel()
	reply := []any{}
	for i := range slots {
		reply = append(reply, []any{int64(i), int64(i), []any{[]byte("10.0.0.1"), int64(i%3 + 1)}})
	}
	masters, err := Masters(reply, one)
	require.NoError(t, err)
	require.Len(t, masters, 3)
	_, err = Masters(append(reply, reply[0]), one)
	require.ErrorIs(t, err, transport.ErrBadReply)
}
