package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// unserve takes the slot of key from all nodes, and has node one say so to those that listen.
func (w *world) unserve(key string) {
	w.do(func() {
		w.owner[transport.HashSlot(key)] = ""
		for _, c := range w.servers[one].subs["SHARDNUMSUB"+key] {
			go func() { _, _ = c.Write([]byte(push("sunsubscribe", key))) }()
		}
		delete(w.servers[one].subs, "SHARDNUMSUB"+key)
	})
}

// times returns how often a command was sent to a node.
func (w *world) times(addr, command string) (n int) {
	w.do(func() { n = count(w.servers[addr].asked, command) })
	return n
}

// A cluster without full coverage serves its other slots when one is served by no node.
func TestASlotThatIsNotServedForAWhileCostsOtherSlotsNothing(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, next string }{{"the same node", one}, {"another node", two}} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				t := w.t
				lost, other := w.subscribe(key), w.subscribe("{b}")
				require.Equal(t, 1, w.listeners(one, "SHARDNUMSUB", "{b}"))
				w.unserve(key)
				time.Sleep(10 * time.Second)
				require.Less(t, w.times(one, "SSUBSCRIBE"), 30)
				require.Less(t, w.times(one, "CLUSTER")+w.times(two, "CLUSTER"), 30)
				require.NoError(t, lost.Err())
				w.publish(one, "SHARDNUMSUB", "{b}", "there")
				w.requireEvent(other, transport.Event{Payload: "there"})

				w.move(key, c.next)
				w.requireEvent(lost, transport.Event{Gap: true})
				w.publish(c.next, "SHARDNUMSUB", key, "there, too")
				w.requireEvent(lost, transport.Event{Payload: "there, too"})
				select {
				case e := <-other.Events():
					require.Fail(t, "it is served all the time", "%+v", e)
				default:
				}
				lost.Close()
				other.Close()
			})
		})
	}
}

// A slot may move to a node that does not serve it yet, and then be nowhere for a while. No
// call asks for it.
func TestASubscriptionThatMovesToASlotThatIsNotServedWaits(t *testing.T) {
	inWorld(t, func(w *world) {
		t := w.t
		sub := w.subscribe(key)
		other := w.subscribe("{foo}") // so there is a connection to the other node
		require.Equal(t, 1, w.listeners(two, "SHARDNUMSUB", "{foo}"))
		w.move(key, two)
		w.do(func() { w.servers[two].unready = key })
		w.kill(one)
		time.Sleep(5 * time.Second)
		w.unserve(key)
		time.Sleep(5 * time.Second)
		require.NoError(t, sub.Err())
		w.do(func() {
			asked := w.servers[two].asked
			assert.Less(t, count(asked, "SSUBSCRIBE"), 50)
			assert.Less(t, count(asked, "CLUSTER"), 50)
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
