package follow

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

func at(seconds int) time.Time { return time.Unix(int64(seconds), 0) }

type State struct {
	At           time.Time
	Owner, Count string
	Others       []inspect.Holder
	Mode         string
	Lease        time.Duration
	Queue        []string
	Waiting      int
}

func (s State) snapshot() *inspect.Snapshot {
	now := &inspect.Snapshot{Answered: s.At, Mode: s.Mode, TTL: s.Lease, Waiting: s.Waiting}
	if s.Owner != "" {
		now.Holders = append([]inspect.Holder{{Owner: s.Owner, Count: inspect.Count(s.Count)}}, s.Others...)
	}
	for _, owner := range s.Queue {
		now.Queue = append(now.Queue, admin.Waiter{Text: owner})
	}
	return now
}

func brief(events []Event) (all []string) {
	for _, e := range events {
		said := e.What + " " + e.Owner
		if e.From != "" {
			said += " from " + e.From
		}
		if e.Count != "" {
			said += " x" + e.Count
		}
		if e.Place > 0 {
			said += fmt.Sprintf(" at %d", e.Place)
		}
		all = append(all, said)
	}
	return all
}

func TestEventsDescribeChanges(t *testing.T) {
	t.Parallel()
	const lease = 30 * time.Second
	held := func(second int, owner, count string) State {
		return State{At: at(second), Owner: owner, Count: count, Lease: lease}
	}
	free := func(second int) State { return State{At: at(second)} }
	all, owner := []Message{{At: at(40)}}, func(names ...string) (called []Message) {
		for _, name := range names {
			called = append(called, Message{At: at(40), Owner: name})
		}
		return called
	}
	rw := func(second int, mode string, owners ...string) State {
		s := held(second, owners[0], "1")
		for _, owner := range owners[1:] {
			s.Others = append(s.Others, inspect.Holder{Owner: owner, Count: "1"})
		}
		s.Mode = mode
		return s
	}
	with := func(s State, queue ...string) State { s.Queue = queue; return s }
	cut := func(s State) State { s.Waiting = 300; return s }
	for what, c := range map[string]struct {
		before, now State
		heard       []Message // between them
		want        []string
	}{
		"nothing":                      {held(0, "a", "1"), held(1, "a", "1"), nil, nil},
		"still free":                   {free(0), free(1), nil, nil},
		"taken and freed unseen":       {free(0), free(1), all, nil},
		"taken":                        {free(0), held(1, "a", "1"), nil, []string{"taken a x1"}},
		"passed":                       {held(0, "a", "1"), held(1, "b", "1"), all, []string{"passed b from a x1"}},
		"passed without a message":     {held(0, "a", "1"), held(1, "b", "1"), nil, []string{"passed b from a x1"}},
		"passed by a call":             {held(0, "a", "1"), held(1, "b", "1"), owner("b"), []string{"passed b from a x1"}},
		"freed and taken by the same":  {held(0, "a", "1"), held(1, "a", "1"), all, []string{"passed a from a x1"}},
		"another called in vain":       {held(0, "a", "1"), held(1, "a", "1"), owner("b", "b", "c"), nil},
		"another called, and entered":  {held(0, "a", "1"), held(1, "a", "2"), owner("b"), []string{"entered a x2"}},
		"away, and back by a call":     {held(0, "a", "1"), held(1, "a", "1"), owner("a", "b", "a"), []string{"passed a from a x1"}},
		"released":                     {held(0, "a", "1"), free(1), all, []string{"released a"}},
		"released to one":              {held(0, "a", "1"), free(1), owner("b"), []string{"released a"}},
		"released when it was over":    {held(0, "a", "1"), free(30), all, []string{"released a"}},
		"expired":                      {held(0, "a", "1"), free(30), nil, []string{"expired a"}},
		"deleted":                      {held(0, "a", "1"), free(29), nil, []string{"gone a"}},
		"deleted, and never to expire": {State{Owner: "a", Count: "1", Lease: -1}, free(1), nil, []string{"gone a"}},
		"entered":                      {held(0, "a", "1"), held(1, "a", "2"), nil, []string{"entered a x2"}},
		"left":                         {held(0, "a", "11"), held(1, "a", "9"), nil, []string{"left a x9"}},
		"queued":                       {with(free(0), "a"), with(free(1), "a", "b", "c"), nil, []string{"queued b at 2", "queued c at 3"}},
		"readers come in together":     {free(0), rw(1, "read", "a", "b"), all, []string{"taken a x1", "entered b x1"}},
		"a reader comes":               {rw(0, "read", "a"), rw(1, "read", "b", "a"), nil, []string{"entered b x1"}},
		"a reader comes, one goes":     {rw(0, "read", "a", "b"), rw(1, "read", "b", "c"), nil, []string{"left a", "entered c x1"}},
		"from a writer to readers":     {rw(0, "write", "w:write"), rw(1, "read", "a", "b"), all, []string{"passed a from w:write x1", "entered b x1"}},
		"a downgrade":                  {rw(0, "write", "w:write", "w"), rw(1, "read", "w"), all, []string{"left w:write"}},
		"all readers go":               {rw(0, "read", "a", "b"), free(1), all, []string{"released a", "released b"}},
		"readers with nothing new":     {rw(0, "read", "a", "b"), rw(1, "read", "b", "a"), all, nil},
		"quit":                         {with(held(0, "x", "1"), "a", "b"), with(held(1, "x", "1"), "b"), nil, []string{"quit a"}},
		"the next one got it": {
			with(held(0, "x", "1"), "a", "b"), with(held(1, "a", "1"), "b"), all, []string{"passed a from x x1"},
		},
		"the next one got it unheard": {
			with(held(0, "x", "1"), "a", "b"), with(held(1, "a", "1"), "b"), nil, []string{"passed a from x x1"},
		},
		"an owner that has gone may have had it": {
			with(held(0, "x", "1"), "a", "b", "c"), with(held(1, "b", "1"), "c"), all, []string{"passed b from x x1"},
		},
		"come into sight, and out of it": {
			cut(with(held(0, "x", "1"), "a", "b")), cut(with(held(1, "x", "1"), "b", "c")), nil, []string{"quit a"},
		},
		"come after the seen changes": {
			with(held(0, "x", "1"), "a"), cut(with(held(1, "x", "1"), "a", "b")), nil, []string{"queued b at 2"},
		},
	} {
		l := &Lock{Name: "job"}
		l.Look(c.before.snapshot())
		for _, m := range c.heard {
			l.Receive(&m)
		}
		require.Equal(t, len(c.heard) > 0, l.Unseen(), what)
		require.Equal(t, c.want, brief(l.Look(c.now.snapshot())), what)
		require.False(t, l.Unseen(), what)
	}
}

func TestFirstLookReportsState(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]State{
		"held a x2": {Owner: "a", Count: "2", Queue: []string{"b"}},
		"free ":     {Queue: []string{"b"}},
	} {
		require.Equal(t, []string{want}, brief((&Lock{}).Look(s.snapshot())))
	}
	l := &Lock{}
	l.Receive(&Message{At: at(1)})
	require.Equal(t, []string{"released "}, brief(l.Look(State{}.snapshot())))
}

func TestLateMessageCausesNoEvent(t *testing.T) {
	t.Parallel()
	held := func(second int, owner string) State {
		return State{At: at(second), Owner: owner, Count: "1", Lease: time.Minute}
	}
	for what, c := range map[string]struct {
		before State   // the first look
		heard  Message // after it was seen that "a" has the lock
		want   []string
	}{
		"to all, before the answer to the look":     {held(0, "x"), Message{At: at(1)}, nil},
		"to all, after it":                          {held(0, "x"), Message{At: at(2)}, []string{"passed a from a x1"}},
		"to the new owner, after it has passed":     {held(0, "x"), Message{At: at(2), Owner: "a"}, nil},
		"to the new owner, after it has taken it":   {State{At: at(0)}, Message{At: at(2), Owner: "a"}, nil},
		"to an owner that is not new":               {held(0, "a"), Message{At: at(2), Owner: "a"}, nil},
		"to an owner that is not new, not at first": {held(0, "a"), Message{At: at(2)}, []string{"passed a from a x1"}},
	} {
		l := &Lock{Name: "job"}
		l.Look(c.before.snapshot())
		l.Look(held(1, "a").snapshot())
		l.Receive(&c.heard)
		require.Equal(t, c.want, brief(l.Look(held(3, "a").snapshot())), what)
		// Only one message can be late.
		l.Receive(&Message{At: at(4), Owner: "a"})
		l.Receive(&Message{At: at(5), Owner: "a"})
		require.Equal(t, []string{"passed a from a x1"}, brief(l.Look(held(6, "a").snapshot())), what)
	}
	l := &Lock{Name: "job"}
	l.Look(held(0, "x").snapshot())
	l.Receive(&Message{At: at(1), Owner: "a"})
	l.Look(held(2, "a").snapshot())
	l.Receive(&Message{At: at(3), Owner: "a"})
	require.Equal(t, []string{"passed a from a x1"}, brief(l.Look(held(4, "a").snapshot())), "it was called before, and so anew")
}

func TestEventsCarryStateAtTheirTime(t *testing.T) {
	t.Parallel()
	l := &Lock{Name: "job"}
	l.Look(State{At: at(0), Owner: "a", Count: "1", Lease: time.Minute}.snapshot())
	require.False(t, l.Idle())
	for range 7 {
		l.Receive(&Message{At: at(1)})
	}
	events := l.Look(State{At: at(1), Owner: "b", Count: "1", Lease: time.Second, Queue: []string{"c", "d"}, Waiting: 9}.snapshot())
	require.Equal(t, Event{
		At: at(1), Name: "job", What: Passed, Owner: "b", From: "a", Count: "1", Lease: time.Second,
		Queue: 9, Next: "c", Messages: 7,
	}, events[0])
	require.Equal(t, Event{
		At: at(1), Name: "job", What: Queued, Owner: "d", Lease: -1, Place: 2, Queue: 9, Next: "c", Messages: 7,
	}, events[2])
	l.Look(State{At: at(2), Queue: []string{"c"}}.snapshot())
	require.False(t, l.Idle())
	events = l.Look(State{At: at(3)}.snapshot())
	require.Equal(t, []string{"quit c"}, brief(events))
	require.True(t, l.Idle())
}
