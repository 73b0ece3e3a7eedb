package fairqueue

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/testlevel"
)

func wakeUp(p *caller) (woken, called, leads bool) {
	select {
	case <-p.wake:
	default:
		return false, false, false
	}
	p.group.mu.Lock()
	defer p.group.mu.Unlock()
	called, p.called = p.called, false
	return true, called, p.group.first() == p
}

func wasCalled(p *caller) bool {
	_, called, _ := wakeUp(p)
	return called
}

func requireAsleep(t *testing.T, places ...*caller) {
	t.Helper()
	for _, p := range places {
		woken, _, _ := wakeUp(p)
		require.False(t, woken, "%s was woken", p.waiter.Owner)
	}
}

// requireLeads requires that p leads its group and was woken, but not called.
func requireLeads(t *testing.T, p *caller) {
	t.Helper()
	require.True(t, p.leads())
	woken, called, leads := wakeUp(p)
	require.True(t, woken, "it was not woken")
	require.True(t, leads)
	require.False(t, called, "it was called")
}

func requireNoGroup(t *testing.T, qs *Queues, ids ...lockID) {
	t.Helper()
	qs.mu.Lock()
	defer qs.mu.Unlock()
	for _, id := range append(ids, theLock) {
		if g := qs.groups[id]; g != nil {
			require.Zero(t, g.users)
			require.Zero(t, g.waiting.Len())
			require.Empty(t, g.byOwner)
		}
	}
}

func TestFollowerLeavesWithoutWakingOthers(t *testing.T) {
	qs := newQueues(t)
	all := joinAll(qs, "a", "b", "c", "d")
	all[1].leaveGroup()
	all[3].leaveGroup()
	require.True(t, all[0].leads())
	requireAsleep(t, all...)
	all[0].leaveGroup()
	requireLeads(t, all[2])
	all[2].leaveGroup()
	requireNoGroup(t, qs)
}

func TestRequeuedPlaceGoesToEnd(t *testing.T) {
	qs := newQueues(t)
	all := joinAll(qs, "a", "b", "c")
	all[0].back()
	requireLeads(t, all[1])
	all[2].back() // from between the others
	require.True(t, all[1].leads())
	requireAsleep(t, all...)
	all[1].leaveGroup()
	requireLeads(t, all[0])
	all[0].leaveGroup()
	requireLeads(t, all[2])
	all[2].back() // alone
	require.True(t, all[2].leads())
	requireAsleep(t, all[2])
	all[2].leaveGroup()
	requireNoGroup(t, qs)
}

// A waiter may be busy while it is woken.
func TestWakeUpReflectsCurrentState(t *testing.T) {
	qs := newQueues(t)
	all := joinAll(qs, "a", "b", "c")
	all[0].leaveGroup()
	all[1].back()
	woken, called, leads := wakeUp(all[1])
	require.True(t, woken)
	require.False(t, called)
	require.False(t, leads, "it no longer leads")

	all[1].group.call("c")
	woken, called, leads = wakeUp(all[2])
	require.True(t, woken && called && leads, "one wake-up says both")
	requireAsleep(t, all...)
	all[2].back()
	requireLeads(t, all[1])
	all[1].leaveGroup()
	requireLeads(t, all[2]) // its earlier call is over
	all[2].leaveGroup()
	requireNoGroup(t, qs)
}

func TestGroupsAreByKindAndKey(t *testing.T) {
	qs := newQueues(t)
	ids := []lockID{{"fair", "a"}, {"fair", "b"}, {"other", "a"}}
	var all []*caller
	for _, id := range ids {
		all = append(all, join(qs, id, "x"))
	}
	for _, p := range all {
		require.True(t, p.leads())
	}
	all[0].group.call("x")
	require.True(t, wasCalled(all[0]))
	for _, p := range all {
		requireAsleep(t, p)
		p.leaveGroup()
	}
	requireNoGroup(t, qs, ids...)
}

func TestCallWakesOnlyItsWaiter(t *testing.T) {
	qs := newQueues(t)
	all := joinAll(qs, "a", "b", "c")
	all[0].group.call("c")
	all[0].group.call("c") // one is enough
	all[0].group.call("of another process")
	require.True(t, wasCalled(all[2]))
	requireAsleep(t, all...)

	require.False(t, all[2].sawGap())
	require.True(t, wasCalled(all[0]))
	requireAsleep(t, all...)
	require.True(t, all[0].sawGap())
	requireAsleep(t, all...)

	all[2].leaveGroup()
	all[0].group.call("c")
	require.False(t, wasCalled(all[2]), "it has left")
	all[0].leaveGroup()
	all[1].leaveGroup()
	requireNoGroup(t, qs)
}

func TestCallOfLeavingLeaderPassesToNext(t *testing.T) {
	qs := newQueues(t)
	all := joinAll(qs, "a", "b", "c")
	all[2].sawGap()
	all[0].leaveGroup()
	require.True(t, wasCalled(all[1]), "messages may have been missed")
	requireAsleep(t, all[2])
	all[1].leaveGroup()
	requireLeads(t, all[2])
	all[2].leaveGroup()
	requireNoGroup(t, qs)
}

func TestLeavingPlaceWakesOthersOfOwner(t *testing.T) {
	qs := newQueues(t)
	all := joinAll(qs, "x", "first", "x", "y", "x")
	all[3].leaveGroup()
	requireAsleep(t, all...)
	for _, p := range []*caller{all[4], all[0]} { // the newest, and the oldest
		p.leaveGroup()
		require.False(t, wasCalled(all[1]))
		require.True(t, wasCalled(all[2]))
	}
	all[1].group.call("x")
	require.True(t, wasCalled(all[2]), "it is found")
	all[2].leaveGroup()
	all[1].group.call("x")
	require.False(t, wasCalled(all[2]))
	all[1].leaveGroup()
	requireNoGroup(t, qs)
}

func TestEmptyGroupDiscardsPlanAndCalls(t *testing.T) {
	qs := newQueues(t)
	first := join(qs, theLock, "a")
	first.group.plan(time.Minute, false)
	first.group.call("a")
	first.leaveGroup()

	first.join(theLock.key, Waiter{Owner: "b"}) // after an attempt in doubt
	second := join(qs, theLock, "c")
	second.sub = newFakeSub()
	ask, _ := first.Woken()
	require.False(t, ask, "its earlier owner was called")
	first.leaveGroup() // before it could plan
	_, pause := second.Woken()
	require.Equal(t, time.Millisecond, pause)
	second.leaveGroup()
}

func TestNonemptyGroupAlwaysHasLeader(t *testing.T) {
	qs := newQueues(t)
	const workers = 8
	rounds := testlevel.Rounds(500, 2000)
	anchor := join(qs, theLock, "anchor") // one group all the while
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			owner := string(rune('a' + w))
			for range rounds {
				p := join(qs, theLock, owner)
				switch rand.IntN(4) {
				case 0:
					p.back()
				case 1:
					p.sawGap()
				case 2:
					p.group.call("a")
				}
				p.group.plan(time.Minute, false)
				p.leads()
				p.Woken()
				p.leaveGroup()
			}
		})
	}
	wg.Go(func() {
		for range rounds {
			anchor.back()
		}
	})
	wg.Wait()
	require.True(t, anchor.leads())
	require.Equal(t, 1, anchor.group.waiting.Len())
	require.Len(t, anchor.group.byOwner, 1)
	woken, _, _ := wakeUp(anchor)
	require.True(t, woken, "it became the leader, or was called")
	anchor.leaveGroup()
	requireNoGroup(t, qs)

	sweep := func() *group { // as if a second later
		qs.mu.Lock()
		if g := qs.groups[theLock]; g != nil {
			g.contended = time.Time{}
		}
		qs.mu.Unlock()
		qs.sweep()
		qs.mu.Lock()
		defer qs.mu.Unlock()
		return qs.groups[theLock]
	}
	for range workers { // groups come and go with their places
		wg.Go(func() {
			for range rounds / 10 {
				p := join(qs, theLock, "x")
				assert.Same(t, p.group, sweep())
				p.leaveGroup()
				sweep()
			}
		})
	}
	wg.Wait()
	requireNoGroup(t, qs)
}
