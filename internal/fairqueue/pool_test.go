package fairqueue

import (
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

type fakeSub struct {
	events chan transport.Event
	closed atomic.Int64
}

func newFakeSub() *fakeSub { return &fakeSub{events: make(chan transport.Event, 1)} }

func (s *fakeSub) Events() <-chan transport.Event { return s.events }
func (s *fakeSub) Err() error                     { return nil }
func (s *fakeSub) Close()                         { s.closed.Add(1) }

func newSubscription(qs *Queues, n int64) (*subscription, *fakeSub) {
	sub := newFakeSub()
	owner := codec.NewOwner(uuid.UUID{}, n)
	return &subscription{owner: owner, text: owner.String(), sub: sub, queues: qs}, sub
}

func keptSubscriptions(qs *Queues, n int) (all []*subscription, subs []*fakeSub) {
	for i := range n {
		s, sub := newSubscription(qs, int64(i))
		qs.keep(kindOf(theLock), "lock", s, true)
		all, subs = append(all, s), append(subs, sub)
	}
	return all, subs
}

func got(qs *Queues) *subscription {
	s, _ := qs.get(theLock)
	return s
}

func isContended(qs *Queues) bool {
	_, yes := qs.get(theLock)
	return yes
}

// closes returns how often each subscription was closed, as one digit each.
func closes(subs []*fakeSub) string {
	text := ""
	for _, s := range subs {
		text += fmt.Sprint(s.closed.Load())
	}
	return text
}

func TestPooledSubscriptionIsTakenOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs := newQueues(t)
		all, subs := keptSubscriptions(qs, 3)
		require.Nil(t, got(qs), "their holds last")
		all[0].Put()
		all[2].Put()
		all[2].Put()
		other, _ := qs.get(lockID{"fair", "other"})
		require.Nil(t, other)
		other, _ = qs.get(lockID{"plain", "lock"})
		require.Nil(t, other)
		require.Same(t, all[2], got(qs), "the latest first")
		require.Same(t, all[0], got(qs))
		require.Nil(t, got(qs))
		all[1].Close()
		all[1].Close()
		all[1].Put()
		require.Nil(t, got(qs))
		require.Equal(t, "010", closes(subs), "the caller that takes a subscription closes it")
	})
}

func TestPooledSubscriptionExpiresAfterOneSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs := newQueues(t)
		again, one := keptSubscriptions(qs, 1)
		for range 10 { // each wait gives it another second
			again[0].Put()
			time.Sleep(900 * time.Millisecond)
			require.Same(t, again[0], got(qs))
			qs.keep(kindOf(theLock), "lock", again[0], true)
		}
		require.Equal(t, "0", closes(one))
		all, subs := keptSubscriptions(qs, 3)
		all[0].Put()
		time.Sleep(900 * time.Millisecond)
		require.Equal(t, "000", closes(subs))
		require.Same(t, all[0], got(qs))
		qs.keep(kindOf(theLock), "lock", all[0], false)
		all[2].Close()
		require.Equal(t, "001", closes(subs))
		time.Sleep(700 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, "111", closes(subs), "a caller that did not wait does not extend the second")
		all[1].Put()
		require.Nil(t, got(qs))
		qs.keep(kindOf(theLock), "lock", all[0], false)
		require.Equal(t, int64(2), subs[0].closed.Load(), "too late")
		time.Sleep(time.Second)
		synctest.Wait()
		require.Empty(t, qs.groups)
		require.Nil(t, qs.timer)
	})
}

func TestPoolDropsFailedSubscriptionsAndOldMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs := newQueues(t)
		all, subs := keptSubscriptions(qs, 2)
		subs[0].events <- transport.Event{Payload: "0"}
		close(subs[1].events)
		all[0].Put()
		all[1].Put()
		require.Same(t, all[0], got(qs))
		require.Empty(t, subs[0].events)
		require.Equal(t, "01", closes(subs), "the client counts those that are open")
	})
}

func TestLockStaysContendedOneSecondAfterLastWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs := newQueues(t)
		require.False(t, isContended(qs))
		all := joinAll(qs, "a", "b")
		time.Sleep(2 * time.Second)
		require.True(t, isContended(qs))
		require.Nil(t, qs.timer, "idle until then")
		all[0].leaveGroup()
		time.Sleep(2 * time.Second)
		require.True(t, isContended(qs))
		all[1].leaveGroup()
		time.Sleep(900 * time.Millisecond)
		require.True(t, isContended(qs))
		time.Sleep(200 * time.Millisecond)
		require.False(t, isContended(qs))
		time.Sleep(time.Second)
		synctest.Wait()
		require.Empty(t, qs.groups)
		require.Nil(t, qs.timer)
	})
}

func TestClosedClientKeepsNoSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		qs := newQueues(t)
		all, subs := keptSubscriptions(qs, 3)
		all[0].Put()
		require.Same(t, all[0], got(qs))
		all[1].Put()
		require.NoError(t, qs.engine.Close())
		require.Equal(t, "011", closes(subs))
		qs.keep(kindOf(theLock), "lock", all[0], true)
		all[2].Put()
		require.Equal(t, "111", closes(subs))
		require.Nil(t, got(qs))
	})
}
