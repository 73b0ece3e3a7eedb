package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

func TestLostConnectionsAndMastersAreReported(t *testing.T) {
	inWorld(t, func(w *world) {
		w.requireIncr(key, 1)
		lost := w.Lost()
		w.move(key, two)
		w.requireIncr(key, 2)
		time.Sleep(time.Second)
		require.False(w, closed(lost), "one slot of many has moved, with its locks")

		w.takeOver(one, two)
		w.refresh()
		await(w, lost) // a master no longer has any of its slots
		lost = w.Lost()
		w.kill(one)
		require.False(w, closed(lost), "no connection remains")
		w.kill(two)
		await(w, lost) // its connection is lost
	})
}

func closed(c <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// A frozen master closes no connection.
func TestSilentMasterIsLeftAfterFailover(t *testing.T) {
	inWorld(t, func(w *world) {
		w.requireIncr(key, 1)
		w.do(func() { w.servers[one].silent = true })
		came := make(chan error, 1)
		began := time.Now()
		w.Start(incr(key), func(_ any, err error) { came <- err })
		time.Sleep(1500 * time.Millisecond)
		w.takeOver(one, two)
		time.Sleep(time.Second) // the silence is looked into each second
		w.requireIncr(key, 3)   // the silent one has added one
		require.ErrorIs(w, <-came, transport.ErrUncertain)
		require.LessOrEqual(w, time.Since(began), 3*time.Second+time.Millisecond, "the reply limit is six")
	})
}

// A lost machine does not answer a dial. A renewal does not time out and would wait for the dial.
func TestFailoverAbortsDialToLostMaster(t *testing.T) {
	inWorld(t, func(w *world) {
		w.requireIncr(key, 1)
		w.do(func() { w.servers[one].gate = make(chan struct{}) })
		w.kill(one)
		time.Sleep(time.Millisecond)
		began := time.Now()
		came := make(chan error, 1)
		w.Start(&transport.Call{Command: "INCR", NumKeys: 1, Args: []any{key}, Urgent: true, Vital: true}, func(_ any, err error) { came <- err })
		time.Sleep(1500 * time.Millisecond)
		w.takeOver(one, two)
		require.ErrorIs(w, <-came, transport.ErrNotSent)
		require.LessOrEqual(w, time.Since(began), 3*time.Second+time.Millisecond, "the dial may take five")
		w.requireIncr(key, 2)
	})
}
