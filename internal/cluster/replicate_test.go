package cluster

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// copied is the outcome of Replicate.
type copied struct {
	reply any
	have  int64
	err   error
}

// replicate starts INCR and returns a channel for its outcome. The channel has room for an
// erroneous second outcome.
func (w *world) replicate(key string, timeout time.Duration) <-chan copied {
	came := make(chan copied, 2)
	w.Replicate(incr(key), 1, timeout, func(reply any, have int64, err error) { came <- copied{reply, have, err} })
	return came
}

// asked returns the commands sent to a node, and its number of connections.
func (w *world) asked(addr string) (commands []string, conns int) {
	w.do(func() { commands, conns = slices.Clone(w.servers[addr].asked), len(w.servers[addr].conns) })
	return commands, conns
}

func TestWaitRunsOnSlotsMaster(t *testing.T) {
	inWorld(t, func(w *world) {
		w.do(func() { w.servers[one].acks, w.servers[two].acks = 1, 3 })
		w.requireIncr(key, 1)
		w.requireIncr("{foo}", 1)
		_, before := w.asked(one)
		require.Equal(w, 1, before, "one connection, while no call needs more")
		require.Equal(w, copied{int64(2), 1, nil}, await(w, w.replicate(key, time.Second)))
		require.Equal(w, copied{int64(3), 1, nil}, await(w, w.replicate(key, time.Second)))
		asked, conns := w.asked(one)
		assert.Equal(w, []string{"INCR", "WAIT", "INCR", "WAIT"}, asked[len(asked)-4:])
		assert.Equal(w, 2, conns, "one more for all of them")
		asked, conns = w.asked(two)
		assert.NotContains(w, asked, "WAIT")
		assert.Equal(w, 1, conns)
		require.Equal(w, copied{int64(2), 3, nil}, await(w, w.replicate("{foo}", time.Second)))
	})
}

// The slot's former node lacks replicas, which delays WAIT.
func TestReplicatedCallFollowsSlotImmediately(t *testing.T) {
	inWorld(t, func(w *world) {
		w.requireIncr(key, 1)
		w.do(func() { w.servers[one].hold, w.servers[two].acks = make(chan struct{}), 2 })
		w.move(key, two)
		began := time.Now()
		require.Equal(w, copied{int64(2), 2, nil}, await(w, w.replicate(key, time.Second)))
		require.Zero(w, time.Since(began))
		close(w.servers[one].hold)
	})
}

func TestReplicatedCallFollowsMigratingSlot(t *testing.T) {
	inWorld(t, func(w *world) {
		w.requireIncr(key, 1)
		w.do(func() { w.servers[one].asking[key], w.servers[two].acks = two, 2 })
		require.Equal(w, copied{int64(2), 2, nil}, await(w, w.replicate(key, time.Second)))
		asked, _ := w.asked(two)
		require.Equal(w, []string{"ASKING", "INCR", "WAIT"}, asked[len(asked)-3:])
	})
}

func TestFormerMastersReplicasDoNotCount(t *testing.T) {
	inWorld(t, func(w *world) {
		hold := make(chan struct{})
		w.do(func() { w.servers[one].hold, w.servers[one].acks = hold, 1 })
		came := w.replicate(key, time.Second)
		synctest.Wait()
		asked, _ := w.asked(one)
		require.Contains(w, asked, "WAIT begun")
		w.move(key, two)
		w.requireIncr(key, 2) // another call finds out
		close(hold)
		require.Equal(w, copied{int64(1), 0, nil}, await(w, came))
	})
}

func TestOnlyNewMastersReplicasCount(t *testing.T) {
	inWorld(t, func(w *world) {
		w.do(func() { w.servers[one].acks, w.servers[two].acks = 1, 1 })
		require.EqualValues(w, 1, await(w, w.replicate(key, time.Second)).have)
		w.kill(one)
		synctest.Wait()
		o := await(w, w.replicate(key, time.Second))
		require.Error(w, o.err)
		require.Zero(w, o.have)
		w.takeOver(one, two)
		w.refresh()
		time.Sleep(time.Second)
		require.Equal(w, copied{int64(2), 1, nil}, await(w, w.replicate(key, time.Second)))
	})
}

func TestCloseInterruptsReplicaWait(t *testing.T) {
	inWorld(t, func(w *world) {
		hold := make(chan struct{})
		w.do(func() { w.servers[one].hold = hold })
		waiting := w.replicate(key, time.Hour)
		synctest.Wait()
		behind := w.replicate(key, time.Hour)
		require.NoError(w, w.Close())
		require.ErrorIs(w, await(w, waiting).err, transport.ErrUncertain)
		for _, came := range []<-chan copied{behind, w.replicate(key, time.Second)} {
			o := await(w, came)
			require.ErrorIs(w, o.err, transport.ErrNotSent)
			require.ErrorIs(w, o.err, transport.ErrClosed)
		}
		close(hold)
	})
}

func TestReplicaWaitConnectionEndsWithNode(t *testing.T) {
	inWorld(t, func(w *world) {
		hold := make(chan struct{})
		w.do(func() { w.servers[one].hold = hold })
		came := w.replicate(key, time.Hour)
		synctest.Wait()
		w.takeOver(one, two)
		w.requireIncr(key, 2)
		for range 3 {
			time.Sleep(formerTime)
			w.refresh()
		}
		require.Empty(w, came, "it is still pending")
		close(hold)
		require.Zero(w, await(w, came).have)
		time.Sleep(formerTime)
		w.refresh()
		synctest.Wait()
		_, conns := w.asked(one)
		require.Zero(w, conns)
	})
}
