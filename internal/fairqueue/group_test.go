package fairqueue

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func wakeUp(p *Place) (woken, called, leads bool) {
	select {
	case <-p.wake:
	default:
		return false, false, false
	}
	called, leads, _ = p.woken()
	return true, called, leads
}

func wasCalled(p *Place) bool {
	_, called, _ := wakeUp(p)
	return called
}

func requireAsleep(t *testing.T, places ...*Place) {
	t.Helper()
	for _, p := range places {
		woken, _, _ := wakeUp(p)
		require.False(t, woken, "%s was woken", p.waiter.Owner)
	}
}

// requireLeads requires that a place leads and was woken, not called.
func requireLeads(t *testing.T, p *Place) {
	t.Helper()
	require.True(t, p.Leads())
	woken, called, leads := wakeUp(p)
	require.True(t, woken, "it was not woken")
	require.True(t, leads)
	require.False(t, called, "it was called")
}

func requireNoGroup(t *testing.T, qs *Queues, ids ...lockID) {
	t.Helper()
	for _, id := range append(ids, theLock) {
		made := false
		qs.groups.Join(id, func() *Group { made = true; return nil })
		qs.groups.Leave(id)
		require.True(t, made, "there is still a group")
	}
}

func TestFirstOfAGroupLeads(t *testing.T) {
	qs := newQueues(t)
	all := joinAll(qs, "a", "b", "c")
	requireAsleep(t, all[0])
	for i, p := range all {
		require.True(t, p.Leads())
		for _, later := range all[i+1:] {
			require.False(t, later.Leads())
			requireAsleep(t, later)
		}
		p.Leave()
		if i+1 < len(all) {
			requireLeads(t, all[i+1])
		}
	}
	requireNoGroup(t, qs)
}

func TestPlaceThatDidNotLeadLeavesWithoutWakingAnother(t *testing.T) {
	qs := newQueues(t)
	all := joinAll(qs, "a", "b", "c", "d")
	all[1].Leave()
	all[3].Leave()
	require.True(t, all[0].Leads())
	requireAsleep(t, all...)
	all[0].Leave()
	requireLeads(t, all[2])
	all[2].Leave()
	requireNoGroup(t, qs)
}

func TestPlaceThatIsQueuedAnewGoesBehindTheOthers(t *testing.T) {
	qs := newQueues(t)
	all := joinAll(qs, "a", "b", "c")
	all[0].Back()
	requireLeads(t, all[1])
	all[2].Back() // from between the others
	require.True(t, all[1].Leads())
	requireAsleep(t, all...)
	all[1].Leave()
	requireLeads(t, all[0])
	all[0].Leave()
	requireLeads(t, all[2])
	all[2].Back() // alone
	require.True(t, all[2].Leads())
	requireAsleep(t, all[2])
	all[2].Leave()
	requireNoGroup(t, qs)
}

// A waiter may be busy while it is woken.
func TestWakeUpSaysWhatIsTrueWhenItIsRead(t *testing.T) {
	qs := newQueues(t)
	all := joinAll(qs, "a", "b", "c")
	all[0].Leave()
	all[1].Back()
	woken, called, leads := wakeUp(all[1])
	require.True(t, woken)
	require.False(t, called)
	require.False(t, leads, "it leads no longer")

	all[1].Call("c")
	woken, called, leads = wakeUp(all[2])
	require.True(t, woken && called && leads, "one wake-up says both")
	requireAsleep(t, all...)
	all[2].Back()
	requireLeads(t, all[1])
	all[1].Leave()
	requireLeads(t, all[2]) // it was called earlier, which is over
	all[2].Leave()
	requireNoGroup(t, qs)
}

func TestGroupsAreByKindAndKey(t *testing.T) {
	qs := newQueues(t)
	ids := []lockID{{"fair", "a"}, {"fair", "b"}, {"other", "a"}}
	var all []*Place
	for _, id := range ids {
		all = append(all, join(qs, id, "x"))
	}
	for _, p := range all {
		require.True(t, p.Leads())
	}
	all[0].Call("x")
	for _, p := range all {
		requireAsleep(t, p)
		p.Leave()
	}
	requireNoGroup(t, qs, ids...)
}

func TestCallWakesTheWaiterThatIsMeantAndNoOther(t *testing.T) {
	qs := newQueues(t)
	all := joinAll(qs, "a", "b", "c")
	all[0].Call("c")
	all[0].Call("c") // one is enough
	all[0].Call("a") // itself
	all[0].Call("of another process")
	require.True(t, wasCalled(all[2]))
	requireAsleep(t, all...)

	require.False(t, all[2].Gap())
	require.True(t, wasCalled(all[0]))
	requireAsleep(t, all...)
	require.True(t, all[0].Gap())
	requireAsleep(t, all...)

	all[2].Leave()
	all[0].Call("c")
	require.False(t, wasCalled(all[2]), "it has left")
	all[0].Leave()
	all[1].Leave()
	requireNoGroup(t, qs)
}

func TestPlaceThatLeadsKnowsWhenTheFirstIsToAsk(t *testing.T) {
	qs := newQueues(t)
	all := joinAll(qs, "a", "b")
	_, _, planned := all[1].woken()
	require.Zero(t, planned)
	at := time.Now().Add(time.Minute)
	all[0].Plan(at)
	all[0].Leave()
	_, leads, planned := all[1].woken()
	require.True(t, leads)
	require.Equal(t, at, planned)
	all[1].Leave()
	requireNoGroup(t, qs)
}

func TestOneOfAnOwnersPlacesIsLeftAndTheOthersAsk(t *testing.T) {
	qs := newQueues(t)
	all := joinAll(qs, "x", "first", "x", "y", "x")
	all[3].Leave()
	requireAsleep(t, all...)
	for _, p := range []*Place{all[4], all[0]} { // the newest, and the oldest
		p.Leave()
		require.False(t, wasCalled(all[1]))
		require.True(t, wasCalled(all[2]))
	}
	all[1].Call("x")
	require.True(t, wasCalled(all[2]), "it is found")
	all[2].Leave()
	all[1].Call("x")
	require.False(t, wasCalled(all[2]))
	all[1].Leave()
	requireNoGroup(t, qs)
}

func TestGroupWithPlacesAlwaysHasOneThatLeads(t *testing.T) {
	qs := newQueues(t)
	const workers, rounds = 8, 2000
	anchor := join(qs, theLock, "anchor") // one group all the while
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			owner := string(rune('a' + w))
			for range rounds {
				p := join(qs, theLock, owner)
				switch rand.IntN(4) {
				case 0:
					p.Back()
				case 1:
					p.Gap()
				case 2:
					p.Call("a")
				}
				p.Plan(time.Now())
				p.Leads()
				p.woken()
				p.Leave()
			}
		})
	}
	wg.Go(func() {
		for range rounds {
			anchor.Back()
		}
	})
	wg.Wait()
	require.True(t, anchor.Leads())
	require.Same(t, anchor.group.first, anchor.group.last)
	require.Len(t, anchor.group.byOwner, 1)
	woken, _, _ := wakeUp(anchor)
	require.True(t, woken, "it has come to lead, or was called")
	anchor.Leave()
	requireNoGroup(t, qs)
	for range workers { // groups come and go with their places
		wg.Go(func() {
			for range rounds {
				join(qs, theLock, "x").Leave()
			}
		})
	}
	wg.Wait()
	requireNoGroup(t, qs)
}
