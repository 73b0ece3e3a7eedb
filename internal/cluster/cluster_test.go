package cluster

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// The nodes in most worlds, and a name for a key and a channel on the first node.
const (
	one = "10.0.0.1:1"
	two = "10.0.0.2:1"
	key = "redlatch:{bar}" // slot 5061
)

// inWorld runs body in a synctest bubble, with a cluster of two nodes.
func inWorld(t *testing.T, body func(w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { body(newWorld(t, "SPUBLISH", one, two)) })
}

func TestCallsGoToSlotOwner(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 50 {
			w.requireIncr("key"+string(rune('a'+i)), 1)
		}
		w.do(func() {
			assert.Contains(w, w.servers[one].asked, "INCR")
			assert.Contains(w, w.servers[two].asked, "INCR")
			assert.Equal(w, 1, count(w.servers[one].asked, "CLUSTER")+count(w.servers[two].asked, "CLUSTER"), "surveys")
		})
		assert.Equal(w, transport.HashSlot(key), w.Slot(key))
		assert.Equal(w, "SPUBLISH", w.PublishCommand())
	})
}

func count(all []string, word string) (n int) {
	for _, w := range all {
		if w == word {
			n++
		}
	}
	return n
}

func TestMovedCallUpdatesRouting(t *testing.T) {
	inWorld(t, func(w *world) {
		w.requireIncr(key, 1)
		again := w.Reconnected()
		w.move(key, two)
		w.requireIncr(key, 2)
		<-again
		synctest.Wait()
		before := 0
		w.do(func() { before = count(w.servers[one].asked, "INCR") })
		w.requireIncr(key, 3)
		w.do(func() { assert.Equal(w, before, count(w.servers[one].asked, "INCR")) })
	})
}

func TestMigratingSlotIsRedirectedPerCall(t *testing.T) {
	inWorld(t, func(w *world) {
		w.requireIncr(key, 1)
		w.do(func() { w.servers[one].asking[key] = two })
		w.requireIncr(key, 2)
		w.requireIncr(key, 3)
		w.do(func() {
			asked := w.servers[two].asked
			i := slices.Index(asked, "ASKING")
			require.GreaterOrEqual(w, i, 0)
			assert.Equal(w, "INCR", asked[i+1], "directly before the call")
			assert.Equal(w, 3, count(w.servers[one].asked, "INCR"), "the slot is still there")
		})
	})
}

func TestCircularRedirectFailsNotSent(t *testing.T) {
	inWorld(t, func(w *world) {
		w.do(func() { w.servers[one].lies, w.servers[two].lies = two, one })
		_, err := w.incr(key)
		require.ErrorIs(w, err, transport.ErrNotSent)
		require.True(w, transport.IsCode(err, "MOVED"), "%v", err)
		w.do(func() {
			assert.Equal(w, maxHops+1, count(w.servers[one].asked, "INCR")+count(w.servers[two].asked, "INCR"))
		})
	})
}

func TestAbandonedCallIsNotRedirected(t *testing.T) {
	inWorld(t, func(w *world) {
		gate := make(chan struct{})
		w.cfg.Seeds = []string{one} // before the first refresh
		w.do(func() { w.servers[two].gate = gate })
		w.requireIncr(key, 1)
		w.move(key, two)
		call := incr(key)
		came := make(chan error, 1)
		w.Start(call, func(_ any, err error) { came <- err })
		synctest.Wait()
		require.False(w, call.Abandon(), "it was sent to the first node")
		require.NoError(w, w.Fence(w.Context(), call), "which has answered")
		require.Empty(w, came)
		close(gate)
		require.ErrorIs(w, <-came, transport.ErrNotSent)
		w.requireIncr(key, 2)
		w.do(func() { assert.Equal(w, 1, count(w.servers[two].asked, "INCR"), "it has run after all") })
	})
}

func TestCallsWaitingForRefreshEndWithIt(t *testing.T) {
	inWorld(t, func(w *world) {
		w.kill(one)
		w.kill(two)
		_, err := w.incr(key)
		require.ErrorIs(w, err, transport.ErrNotSent)
		require.ErrorContains(w, err, "connection refused")
		w.do(func() { w.servers[two].down = false })
		_, err = w.incr(key)
		require.ErrorIs(w, err, transport.ErrNotSent, "its own node is down still")
		w.do(func() { w.servers[one].down = false })
		time.Sleep(time.Second)
		w.requireIncr(key, 1)
	})
}

func TestCallForUnservedSlotIsNotSent(t *testing.T) {
	inWorld(t, func(w *world) {
		w.move(key, "")
		_, err := w.incr(key)
		require.ErrorIs(w, err, transport.ErrNotSent)
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		_, err = w.Subscribe(ctx, key)
		require.ErrorIs(w, err, transport.ErrNotSent)
		w.requireIncr("{foo}", 1)
	})
}

func TestSilentNodeDelaysRefreshBriefly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for range 10 { // the first node is random
			w := newWorld(t, "SPUBLISH", one, two)
			w.do(func() { w.servers[one].silent = true })
			began := time.Now()
			w.requireIncr("{foo}", 1) // the other's
			assert.LessOrEqual(t, time.Since(began), hurry)
		}
	})
}

func TestNewMasterIsFoundAfterFailure(t *testing.T) {
	inWorld(t, func(w *world) {
		w.requireIncr(key, 1)
		sub := w.subscribe(key)
		w.kill(one)
		_, err := w.incr(key)
		require.Error(w, err)
		time.Sleep(3 * time.Second)
		again := w.Reconnected()
		w.takeOver(one, two)
		began := time.Now()
		w.requireEvent(sub, transport.Event{Gap: true}) // without a call: the subscription looks
		assert.LessOrEqual(w, time.Since(began), 1500*time.Millisecond)
		<-again
		w.requireIncr(key, 2)
		w.publish(two, "SHARDNUMSUB", key, "there")
		w.requireEvent(sub, transport.Event{Payload: "there"})
		sub.Close()
	})
}

func TestConnectionsToDemotedNodeEnd(t *testing.T) {
	inWorld(t, func(w *world) {
		w.requireIncr(key, 1)
		sub := w.subscribe(key)
		w.takeOver(one, two)
		w.requireIncr(key, 2)
		w.requireEvent(sub, transport.Event{Gap: true})
		open := func() (n int) { w.do(func() { n = len(w.servers[one].conns) }); return n }
		synctest.Wait()
		require.Equal(w, 3, open())
		time.Sleep(formerTime)
		w.refresh()
		time.Sleep(time.Second)
		w.refresh() // the first one has just used it
		synctest.Wait()
		require.Zero(w, open())
		w.requireIncr(key, 3)
		sub.Close()
	})
}

func TestFenceKnowsConnectionsNode(t *testing.T) {
	inWorld(t, func(w *world) {
		here := incr(key)
		there := incr("{foo}")
		var wg sync.WaitGroup
		for _, call := range []*transport.Call{here, there} {
			wg.Add(1)
			w.Start(call, func(_ any, err error) { assert.NoError(w, err); wg.Done() })
		}
		wg.Wait()
		assert.NotEqual(w, here.Conn(), there.Conn(), "both servers call their connection 7")
		assert.NoError(w, w.Fence(w.Context(), here))
		w.kill(one)
		synctest.Wait()
		assert.Error(w, w.Fence(w.Context(), here))
		assert.NoError(w, w.Fence(w.Context(), there))
		assert.ErrorIs(w, w.Fence(w.Context(), &transport.Call{}), errNoFence)
	})
}
