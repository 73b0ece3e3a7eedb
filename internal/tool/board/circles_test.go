package board

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/tool/inspect"
)

var clients = map[string]string{
	"A": "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11", "B": "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a12", "C": "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a13",
}

// lockOf returns a lock: "x A1 B1 C1" is x, held by thread 1 of A, for which threads of B and C are
// waiting.
func lockOf(text string) Entry {
	parts := strings.Fields(text)
	owner := func(short string) string { return clients[short[:1]] + ":" + short[1:] }
	l := &inspect.Lock{Name: parts[0], Kind: inspect.Fair}
	if parts[1] != "-" {
		l.Holders = []inspect.Holder{{Owner: owner(parts[1]), Count: "1"}}
	}
	for _, waiter := range parts[2:] {
		l.Places, l.PlaceLabels = append(l.Places, owner(waiter)), append(l.PlaceLabels, "")
		l.Queue++
	}
	if l.Queue > 0 {
		l.Next = l.Places[0]
	}
	return Entry{Lock: l}
}

// shown returns circles in short form: "A1 x B1, B1 y A1".
func shown(circles []inspect.Circle) string {
	var all []string
	for _, c := range circles {
		var parts []string
		for _, s := range c {
			parts = append(parts, fmt.Sprintf("%s %s %s", short(s.Waiter), s.Lock, short(s.Holder)))
		}
		all = append(all, strings.Join(parts, ", "))
	}
	return strings.Join(all, "; ")
}

func short(owner string) string {
	for name, id := range clients {
		owner = strings.Replace(owner, id+":", name, 1)
	}
	return owner
}

// scans makes scans one second apart. The waiters in dead, such as "x A1", do not have a
// subscriber.
type scans struct {
	memory
	dead []string
}

func newScans(dead ...string) *scans { return &scans{memory{seen: &seen{}}, dead} }

// scan finds the troubles of some locks.
func (m *scans) scan(locks ...string) (found *Locks) {
	found = &Locks{}
	for _, text := range locks {
		found.Entries = append(found.Entries, lockOf(text))
	}
	count := func(all []place) (counts []int64, err error) {
		for _, at := range all {
			n := int64(1)
			if slices.Contains(m.dead, at.Lock+" "+short(at.Owner)) {
				n = 0
			}
			counts = append(counts, n)
		}
		return counts, nil
	}
	found.findDead(&m.memory, nodeFronts, count)
	found.findCircles(&m.memory, func(now []inspect.Circle) ([]inspect.Circle, error) { return now, nil })
	for at, a := range m.seen.presence.absent { // a second has passed
		m.seen.presence.absent[at] = absence{a.first.Add(-absentFor), a.last.Add(-absentFor)}
	}
	return found
}

func TestCyclesNeedLiveWaitersInTwoScans(t *testing.T) {
	synctest.Test(t, testCyclesNeedLiveWaiters)
}

func testCyclesNeedLiveWaiters(t *testing.T) {
	const two, sure = "x A1 B1/y B1 A1", "A1 y B1, B1 x A1"
	for what, steps := range map[string][]struct{ locks, circles string }{
		"mutual":       {{two, ""}, {two, sure}},
		"gone between": {{two, ""}, {"x A1 B1/y B1", ""}, {two, ""}, {two, sure}},
		"same clients": {{"x A1 B1/y B2 A1", ""}, {"x A1 B1/y B2 A1", ""}},
	} {
		m := newScans()
		for i, step := range steps {
			time.Sleep(5 * time.Second)
			found := m.scan(strings.Split(step.locks, "/")...)
			require.Equal(t, step.circles, shown(found.Circles), "%s, scan %d", what, i)
			for _, e := range found.Entries {
				require.Equal(t, step.circles != "", e.Trouble == InCircle, "%s, scan %d", what, i)
			}
			inCircle := slices.ContainsFunc(clientsOf(found.Entries, found.Circles, m.isDead), func(c Client) bool { return c.InCircle })
			require.Equal(t, step.circles != "", inCircle, "%s, scan %d", what, i)
			require.Equal(t, step.circles == "" && step.locks == two, found.pending, "%s, scan %d", what, i)
		}
	}
}

func TestEachDeadFrontIsFound(t *testing.T) {
	t.Parallel()
	m := newScans()
	var locks []string
	for i := range 3 * nodeFronts {
		locks = append(locks, fmt.Sprintf("lock%02d - A%d", i, i))
		if i%3 > 0 {
			m.dead = append(m.dead, fmt.Sprintf("lock%02d A%d", i, i))
		}
	}
	n := 0
	for range 30 {
		n = 0
		for _, e := range m.scan(locks...).Entries {
			if e.Trouble == DeadFront {
				n++
			}
		}
	}
	require.Equal(t, len(m.dead), n)
}

func TestClientCombinesHoldsAndWaitsOfOwners(t *testing.T) {
	synctest.Test(t, testClientCombines)
}

func testClientCombines(t *testing.T) {
	m := newScans()
	locks := []string{"a A1", "x A1 B1 C1", "y B1 A1", "w C1 A2 A3"}
	m.scan(locks...)
	time.Sleep(5 * time.Second)
	found := m.scan(locks...)
	found.Clients = clientsOf(found.Entries, found.Circles, m.isDead)
	a := found.Client(clients["A"])
	var holds, waits []string
	for _, h := range a.Holds {
		holds = append(holds, h.Name+" "+short(h.Owner))
	}
	for _, w := range a.Waits {
		waits = append(waits, fmt.Sprint(w.Name, " ", short(w.Owner), " ", w.Position))
	}
	require.Equal(t, []string{"x A1", "a A1"}, holds, "those with most trouble first")
	require.Equal(t, []string{"w A2 1", "w A3 2", "y A1 1"}, waits)
	require.Equal(t, "redisson", a.Kind)
	require.True(t, a.InCircle)
	require.False(t, found.Client(clients["C"]).InCircle, "it waits for one that is")
	require.Nil(t, found.Client("other"))
}

func TestClientHoldHasItsAge(t *testing.T) {
	t.Parallel()
	e := lockOf("x A1")
	e.Holders = append(e.Holders, inspect.Holder{Owner: clients["B"] + ":1", Count: "1"})
	e.Ages = []Age{{at(1), false}, {at(2), true}}
	e.Age = oldest(e.Ages)
	all := clientsOf([]Entry{e}, nil, newScans().isDead)
	require.Equal(t, e.Ages[0], all[0].Holds[0].Age)
	require.Equal(t, e.Ages[1], all[1].Holds[0].Age)
}

func TestLockBeingHandedOverIsHealthy(t *testing.T) {
	t.Parallel()
	m := newScans()
	free := func(waiters string) string {
		found := &Locks{}
		found.add(entryOf(lockOf("x - "+waiters).Lock), ByTrouble)
		found.passing(&m.memory)
		return found.Entries[0].Trouble
	}
	require.Empty(t, free("A1 B1"))
	require.Empty(t, free("B1 C1"), "it has moved")
	require.Equal(t, Untaken, free("B1 C1"))
	require.Equal(t, Untaken, free("B1"))
}
