package cluster

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

func TestBothMessageKindsAreReceivedOnSlotsNode(t *testing.T) {
	inWorld(t, func(w *world) {
		w.cfg.Seeds = []string{one} // before the first refresh
		sub := w.subscribe(key)
		require.Equal(w, 1, w.listeners(one, "NUMSUB", key))
		require.Equal(w, 1, w.listeners(one, "SHARDNUMSUB", key))
		for _, kind := range []string{"NUMSUB", "SHARDNUMSUB"} {
			w.publish(one, kind, key, kind)
			w.requireEvent(sub, transport.Event{Payload: kind})
		}
		second := w.subscribe(key)
		require.Equal(w, 1, w.listeners(one, "NUMSUB", key), "a channel is subscribed once")
		second.Close()
		sub.Close()
		synctest.Wait()
		assert.Zero(w, w.listeners(one, "NUMSUB", key))
		assert.Zero(w, w.listeners(one, "SHARDNUMSUB", key))
		w.do(func() { assert.Empty(w, w.servers[two].conns, "no subscription on that node") })
	})
}

func TestSubscriptionFollowsSlotWithOneGap(t *testing.T) {
	inWorld(t, func(w *world) {
		sub := w.subscribe(key)
		w.move(key, two)
		w.drop(key)
		w.requireEvent(sub, transport.Event{Gap: true})
		require.Equal(w, 1, w.listeners(two, "NUMSUB", key))
		require.Equal(w, 1, w.listeners(two, "SHARDNUMSUB", key))
		w.publish(two, "SHARDNUMSUB", key, "over there")
		w.requireEvent(sub, transport.Event{Payload: "over there"})
		synctest.Wait()
		assert.Zero(w, w.listeners(one, "NUMSUB", key), "it is left behind")
		sub.Close()
	})
}

func TestEventCountsMergedEvents(t *testing.T) {
	inWorld(t, func(w *world) {
		sub := w.subscribe(key)
		for range 2 {
			w.publish(one, "NUMSUB", key, "first")
			w.publish(one, "SHARDNUMSUB", key, "second")
			w.publish(one, "NUMSUB", key, "third")
			synctest.Wait()
			e := <-sub.Events()
			require.Equal(w, 2, e.Coalesced)
		}
		sub.Close()
	})
}

func TestGapReportedWhenBothSubscriptionsReturn(t *testing.T) {
	inWorld(t, func(w *world) {
		sub := w.subscribe(key)
		for range 3 {
			w.do(func() {
				for c := range w.servers[one].conns {
					_ = c.Close()
				}
				clear(w.servers[one].subs)
			})
			w.requireEvent(sub, transport.Event{Gap: true})
			require.Equal(w, 1, w.listeners(one, "NUMSUB", key))
			require.Equal(w, 1, w.listeners(one, "SHARDNUMSUB", key))
			time.Sleep(time.Minute)
			select {
			case e := <-sub.Events():
				require.Fail(w, "one gap is enough", "%+v", e)
			default:
			}
		}
		sub.Close()
	})
}

func TestSingleSubscribeCommandSuffices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "PUBLISH", one)
		w.lacks = "SSUBSCRIBE"
		for range 3 {
			sub := w.subscribe(key)
			w.publish(one, "NUMSUB", key, "there")
			w.requireEvent(sub, transport.Event{Payload: "there"})
			sub.Close()
		}
		synctest.Wait()
		w.do(func() {
			assert.Equal(t, 1, count(w.servers[one].asked, "SSUBSCRIBE"), "it is not tried again and again")
		})
	})
}

func TestChannelRejectedForPublishCommandFails(t *testing.T) {
	inWorld(t, func(w *world) {
		w.do(func() { w.lacks = "SSUBSCRIBE" })
		_, err := w.Subscribe(w.Context(), key)
		require.True(w, transport.IsCode(err, "ERR"), "%v", err)
		synctest.Wait()
		assert.Zero(w, w.listeners(one, "NUMSUB", key), "nor subscribed with the other command")
	})
}

func TestOutageFailsNewSubscriptionsOnly(t *testing.T) {
	inWorld(t, func(w *world) {
		sub := w.subscribe(key)
		w.kill(one)
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		_, err := w.Subscribe(ctx, key+"2")
		require.ErrorIs(w, err, transport.ErrNotSent)
		time.Sleep(time.Duration(testlevel.Rounds(2, 10)) * time.Minute)
		require.NoError(w, sub.Err())
		w.do(func() { w.servers[one].down = false; clear(w.servers[one].subs) })
		w.requireEvent(sub, transport.Event{Gap: true})
		sub.Close()
	})
}

func TestListenersAreCountedOnEveryShardNode(t *testing.T) {
	inWorld(t, func(w *world) {
		const replica = "10.0.0.3:1"
		w.do(func() {
			w.add(replica)
			w.servers[one].replicas = []string{replica}
			w.servers[replica].subs["NUMSUB"+key] = make([]net.Conn, 2)
			w.servers[replica].subs["SHARDNUMSUBother:{bar}"] = make([]net.Conn, 1)
		})
		sub := w.subscribe(key)
		counts, err := w.Listeners(w.Context(), "{foo}", key, "other:{bar}", "nobody:{bar}")
		require.NoError(w, err)
		assert.Equal(w, []int64{0, 3, 1, 0}, counts)
		w.kill(replica)
		synctest.Wait()
		_, err = w.Listeners(w.Context(), key)
		require.ErrorIs(w, err, transport.ErrNotSent)
		require.ErrorContains(w, err, replica)
		sub.Close()
	})
}
