package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// After a failover the new master may be loading, or not know that the cluster is whole.
func TestEstablishedSubscriptionWaitsForUnreadyNode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ command, refusal string }{
		{"PING", "LOADING Redis is loading the dataset in memory"},
		{"PING", "BUSY Redis is busy running a script."},
		{"PING", "ERR max number of clients reached"},
		{"SSUBSCRIBE", "CLUSTERDOWN Hash slot not served"},
	} {
		t.Run(c.refusal, func(t *testing.T) {
			inWorld(t, func(w *world) {
				sub := w.subscribe(key)
				w.requireIncr("{foo}", 1) // so there is a connection to the other node
				w.do(func() { w.servers[two].refuses = map[string]string{c.command: c.refusal} })
				w.move(key, two)
				w.kill(one)
				time.Sleep(10 * time.Second)
				require.NoError(w, sub.Err())
				w.do(func() { w.servers[two].refuses = nil })
				w.requireEvent(sub, transport.Event{Gap: true})
				w.publish(two, "SHARDNUMSUB", key, "there")
				w.requireEvent(sub, transport.Event{Payload: "there"})
				w.publish(two, "NUMSUB", key, "there, too")
				w.requireEvent(sub, transport.Event{Payload: "there, too"})
				sub.Close()
			})
		})
	}
}

func TestFullServerDoesNotDecideSubscribeCommand(t *testing.T) {
	inWorld(t, func(w *world) {
		w.requireIncr(key, 1)
		// The server accepts only the first subscription connection.
		w.do(func() { w.servers[one].full = func(conns int) bool { return conns > 2 } })
		for range 2 {
			sub, err := w.Subscribe(w.Context(), key)
			if err == nil {
				sub.Close()
			}
		}
		w.do(func() { w.servers[one].full = nil })
		time.Sleep(time.Minute)
		sub := w.subscribe(key)
		synctest.Wait()
		require.Equal(w, 1, w.listeners(one, "SHARDNUMSUB", key))
		require.Equal(w, 1, w.listeners(one, "NUMSUB", key))
		sub.Close()
	})
}

func TestSlowSlotReplyDoesNotReplaceNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "SPUBLISH", one, two)
		w.do(func() {
			for _, s := range w.servers {
				s.slow = 1200 * time.Millisecond // less than the command timeout of 3 s
			}
		})
		reply, err := w.incr(key)
		w.do(func() {
			for _, s := range w.servers {
				s.slow = 0
			}
		})
		time.Sleep(time.Minute) // until none of them sleeps
		require.NoError(t, err)
		require.Equal(t, int64(1), reply)
	})
}

// A server names "?" if it does not know the slot's node. It has not run the call.
func TestRedirectToUnknownNodeIsNotSent(t *testing.T) {
	inWorld(t, func(w *world) {
		sub := w.subscribe(key)
		time.Sleep(time.Second)
		w.do(func() { w.servers[one].lies = "?:6379" })
		w.move(key, two)
		_, err := w.incr(key)
		require.ErrorIs(w, err, transport.ErrNotSent)
		time.Sleep(time.Second)
		w.requireIncr(key, 1)
		w.requireEvent(sub, transport.Event{Gap: true})
		sub.Close()
	})
}

// CLUSTER SLOTS may have been sent; the call that waits for the answer was not.
func TestCallWaitingForLostTopologyIsNotSent(t *testing.T) {
	inWorld(t, func(w *world) {
		w.do(func() { w.servers[one].slow, w.servers[two].slow = 2*time.Second, 2*time.Second })
		came := make(chan error, 1)
		go func() {
			_, err := w.incr(key)
			came <- err
		}()
		time.Sleep(time.Second)
		w.kill(one)
		w.kill(two)
		err := <-came
		require.ErrorIs(w, err, transport.ErrNotSent)
		require.NotErrorIs(w, err, transport.ErrUncertain)
		require.ErrorContains(w, err, transport.ErrUncertain.Error())
		time.Sleep(2 * time.Second) // the servers end
	})
}

func TestSubscriptionStaysWhileSlotIsUnserved(t *testing.T) {
	inWorld(t, func(w *world) {
		sub := w.subscribe(key)
		w.takeOver(one, "")
		for range 3 {
			w.refresh()
			time.Sleep(formerTime)
		}
		require.NoError(w, sub.Err())
		w.takeOver("", two)
		w.refresh()
		w.requireEvent(sub, transport.Event{Gap: true})
	})
}

func TestSubscriptionRedirectedToUnknownNodeWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		sub := w.subscribe(key)
		w.requireIncr("{foo}", 1)
		w.do(func() { w.servers[two].lies = "?:6379" })
		w.move(key, two)
		w.kill(one)
		time.Sleep(time.Second)
		require.NoError(w, sub.Err())
		w.do(func() { w.servers[two].lies = "" })
		w.requireEvent(sub, transport.Event{Gap: true})
		sub.Close()
	})
}

// Nodes that disagree on a slot name each other.
func TestCircularSubscriptionRedirectPauses(t *testing.T) {
	inWorld(t, func(w *world) {
		sub := w.subscribe(key)
		w.requireIncr("{foo}", 1)
		w.do(func() {
			w.servers[one].lies, w.servers[two].lies = two, one
			for c := range w.servers[one].conns {
				_ = c.Close()
			}
		})
		time.Sleep(10 * time.Second)
		w.do(func() {
			assert.Less(w, w.servers[one].lied, 300, "in ten seconds")
			w.servers[one].lies, w.servers[two].lies = "", ""
		})
		time.Sleep(10 * time.Second)
		require.NoError(w, sub.Err())
		sub.Close()
	})
}

// unserve takes the slot of key from all nodes.
func (w *world) unserve(key string) {
	w.move(key, "")
	w.drop(key)
}

// times returns how often a command was sent to a node.
func (w *world) times(addr, command string) (n int) {
	w.do(func() { n = count(w.servers[addr].asked, command) })
	return n
}

// A cluster without full coverage still serves other slots.
func TestUnservedSlotDoesNotAffectOtherSlots(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, next string }{{"the same node", one}, {"another node", two}} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				lost, other := w.subscribe(key), w.subscribe("{b}")
				require.Equal(w, 1, w.listeners(one, "SHARDNUMSUB", "{b}"))
				w.unserve(key)
				time.Sleep(10 * time.Second)
				require.Less(w, w.times(one, "SSUBSCRIBE"), 30)
				require.Less(w, w.times(one, "CLUSTER")+w.times(two, "CLUSTER"), 30)
				require.NoError(w, lost.Err())
				w.publish(one, "SHARDNUMSUB", "{b}", "there")
				w.requireEvent(other, transport.Event{Payload: "there"})

				w.move(key, c.next)
				w.requireEvent(lost, transport.Event{Gap: true})
				w.publish(c.next, "SHARDNUMSUB", key, "there, too")
				w.requireEvent(lost, transport.Event{Payload: "there, too"})
				select {
				case e := <-other.Events():
					require.Fail(w, "it is served all the time", "%+v", e)
				default:
				}
				lost.Close()
				other.Close()
			})
		})
	}
}

// A slot may move to a node that does not serve it yet, and then be unserved for a while.
func TestSubscriptionMovedToUnservedSlotWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		sub := w.subscribe(key)
		other := w.subscribe("{foo}") // so there is a connection to the other node
		require.Equal(w, 1, w.listeners(two, "SHARDNUMSUB", "{foo}"))
		w.move(key, two)
		w.do(func() { w.servers[two].unready = key })
		w.kill(one)
		time.Sleep(5 * time.Second)
		w.unserve(key)
		time.Sleep(5 * time.Second)
		require.NoError(w, sub.Err())
		w.do(func() {
			asked := w.servers[two].asked
			assert.Less(w, count(asked, "SSUBSCRIBE"), 50)
			assert.Less(w, count(asked, "CLUSTER"), 50)
			w.servers[two].unready = ""
		})
		w.move(key, two)
		w.requireEvent(sub, transport.Event{Gap: true})
		w.publish(two, "SHARDNUMSUB", key, "there")
		w.requireEvent(sub, transport.Event{Payload: "there"})
		sub.Close()
		other.Close()
	})
}
