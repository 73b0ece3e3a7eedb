package board

import (
	"fmt"
	"slices"
	"strings"
	"testing"

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

func (l *Locks) sure() (all []Circle) {
	for _, c := range l.Circles {
		if c.Sure {
			all = append(all, c)
		}
	}
	return all
}

// shown formats a circle, as in "A1 x B1, B1 y A1".
func shown(c *Circle) string {
	var parts []string
	for _, s := range c.Steps {
		parts = append(parts, fmt.Sprintf("%s %s %s", short(s.Waiter), s.Lock, short(s.Holder)))
	}
	return strings.Join(parts, ", ")
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
	found.findCircles(&m.memory, count)
	for at, a := range m.seen.presence.absent { // a second has passed
		m.seen.presence.absent[at] = absence{a.first.Add(-absentFor), a.last.Add(-absentFor)}
	}
	return found
}

func TestMutualWaitersFormCycleAfterTwoScans(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		locks []string
		sure  string
	}{
		"two":                      {[]string{"x A1 B1", "y B1 A1"}, "A1 y B1, B1 x A1"},
		"three":                    {[]string{"x A1 C1", "y B1 A1", "z C1 B1"}, "A1 y B1, B1 z C1, C1 x A1"},
		"behind another":           {[]string{"x A1 C7 B1", "y B1 A1"}, "A1 y B1, B1 x A1"},
		"beside a chain":           {[]string{"x A1 B1", "y B1 A1 C1", "z C1 C2"}, "A1 y B1, B1 x A1"},
		"with a way out":           {[]string{"x A1 B1", "y B1 A1", "z C1 A1", "w C2 C1"}, "A1 y B1, B1 x A1"},
		"a chain":                  {[]string{"x A1 B1", "y B1 C1"}, ""},
		"a waiter of its own lock": {[]string{"x A1 A1"}, ""},
		"a free lock":              {[]string{"x - A1 B1", "y B1 A1"}, ""},
		"the same clients":         {[]string{"x A1 B1", "y B2 A1"}, ""},
	} {
		m := newScans()
		for _, circle := range m.scan(c.locks...).Circles {
			require.False(t, circle.Sure, "%s: at one scan it may be two moments", what)
		}
		found := m.scan(c.locks...)
		sure := ""
		for i := range found.Circles {
			if found.Circles[i].Sure {
				require.Empty(t, sure, what)
				sure = shown(&found.Circles[i])
			}
		}
		require.Equal(t, c.sure, sure, what)
		for _, e := range found.Entries {
			require.Equal(t, strings.Contains(c.sure+" ", " "+e.Name+" "), e.Trouble == InCircle, "%s: %s", what, e.Name)
		}
	}
}

func TestCyclesNeedLiveWaitersInTwoScans(t *testing.T) {
	t.Parallel()
	const (
		two, sure, maybe = "x A1 B1/y B1 A1", "true A1 y B1, B1 x A1", "false A1 y B1, B1 x A1"
		three, clients   = "x A1 C7 B1/y B1 A1", "x A1 B1/y B2 A2"
		unasked          = "x A1 C1 B7/y B2 C2 A8" // counted only as part of a circle
	)
	for what, steps := range map[string][]struct{ dead, locks, circles, front string }{
		"dead waiter":             {{"y A1", two, "", ""}, {"y A1", two, "", "y"}, {"y A1", two, "", "y"}},
		"gone between":            {{"", two, maybe, ""}, {"", "x A1 B1/y B1", "", ""}, {"", two, maybe, ""}, {"", two, sure, ""}},
		"absent once":             {{"", three, maybe, ""}, {"", three, sure, ""}, {"x B1", three, "", ""}, {"", three, sure, ""}},
		"dead waiter in front":    {{"", three, maybe, ""}, {"x C7", three, sure, ""}, {"x C7", three, sure, ""}},
		"clients":                 {{"", clients, "false A2 y B2, B1 x A1", ""}, {"", clients, "false A2 y B2, B1 x A1", ""}},
		"clients, waiters absent": {{"x B7/y A8", unasked, "", ""}, {"", unasked, "false A8 y B2, B7 x A1", ""}},
	} {
		m := newScans()
		for i, step := range steps {
			m.dead = strings.Split(step.dead, "/")
			found := m.scan(strings.Split(step.locks, "/")...)
			circles, front := "", ""
			for _, c := range found.Circles {
				circles += fmt.Sprintf("%t %s", c.Sure, shown(&c))
			}
			require.Equal(t, step.circles, circles, "%s, scan %d", what, i)
			if found.Entries[0].Trouble == DeadFront { // it comes first
				front = found.Entries[0].Name
			}
			require.Equal(t, step.front, front, "%s, scan %d", what, i)
			inCircle := slices.ContainsFunc(clientsOf(found.Entries, found.Circles, m.isDead), func(c Client) bool { return c.InCircle })
			require.Equal(t, step.circles == sure, inCircle, "%s, scan %d", what, i)
		}
	}
}

func TestDeadCyclesHideNoLiveCycle(t *testing.T) {
	t.Parallel()
	m := newScans()
	locks := []string{"y A99 B99", "z B99 A99"} // the last ones in name order
	for i := range 2 * shownCircles {
		locks = append(locks, fmt.Sprintf("a%d A%d B%d", i, i, i), fmt.Sprintf("b%d B%d A%d", i, i, i))
		m.dead = append(m.dead, fmt.Sprintf("a%d B%d", i, i))
	}
	for range 5 {
		m.scan(locks...)
	}
	found := m.scan(locks...).sure()
	require.Len(t, found, 1)
	require.Equal(t, "A99 z B99, B99 y A99", shown(&found[0]))
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
	t.Parallel()
	m := newScans()
	locks := []string{"a A1", "x A1 B1 C1", "y B1 A1", "w C1 A2 A3"}
	m.scan(locks...)
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

func TestCycleSearchIsBounded(t *testing.T) {
	t.Parallel()
	found, asked := &Locks{}, 0
	for i := range 4000 {
		e := lockOf(fmt.Sprintf("lock%d A%d B%d C%d", i, i+1, i+2, i))
		e.Holders[0].Owner = fmt.Sprintf("%s:%d", clients[string("ABC"[i%3])], i)
		found.Entries = append(found.Entries, e)
	}
	m := newScans()
	for _, who := range []func(string) string{bareOwner, ClientID} {
		calls := 0
		circlesOf(found.Entries, m.isDead, func(owner string) string { calls++; return who(owner) })
		require.LessOrEqual(t, calls, 10*len(found.Entries))
	}
	found.findCircles(&m.memory, func(all []place) ([]int64, error) { asked++; return slices.Repeat([]int64{1}, len(all)), nil })
	require.LessOrEqual(t, asked, counted, "each waiter once")
	require.Len(t, clientsOf(found.Entries, found.Circles, m.isDead), 3)
}
