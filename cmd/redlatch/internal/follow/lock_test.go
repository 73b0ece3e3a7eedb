package follow

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// at is a moment.
func at(seconds int) time.Time { return time.Unix(int64(seconds), 0) }

// brief is an event in few words.
func brief(events []Event) (all []string) {
	for i := range events {
		e := &events[i]
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

func TestWhatHappenedIsWhatChanged(t *testing.T) {
	t.Parallel()
	const lease = 30 * time.Second
	held := func(second int, owner, count string) Sight {
		return Sight{At: at(second), Owner: owner, Count: count, Lease: lease}
	}
	free := func(second int) Sight { return Sight{At: at(second)} }
	told := func(s Sight) Sight { s.Messages = 1; return s }
	with := func(s Sight, queue ...string) Sight { s.Queue = queue; return s }
	for what, c := range map[string]struct {
		before, now Sight
		want        []string
	}{
		"nothing":                      {held(0, "a", "1"), held(1, "a", "1"), nil},
		"still free":                   {free(0), free(1), nil},
		"taken and freed unseen":       {free(0), told(free(1)), nil},
		"taken":                        {free(0), held(1, "a", "1"), []string{"taken a x1"}},
		"passed":                       {held(0, "a", "1"), told(held(1, "b", "1")), []string{"passed b from a x1"}},
		"passed without a message":     {held(0, "a", "1"), held(1, "b", "1"), []string{"passed b from a x1"}},
		"freed and taken by the same":  {held(0, "a", "1"), told(held(1, "a", "1")), []string{"passed a from a x1"}},
		"released":                     {held(0, "a", "1"), told(free(1)), []string{"released a"}},
		"released when it was over":    {held(0, "a", "1"), told(free(30)), []string{"released a"}},
		"expired":                      {held(0, "a", "1"), free(30), []string{"expired a"}},
		"deleted":                      {held(0, "a", "1"), free(29), []string{"gone a"}},
		"deleted, and never to expire": {Sight{Owner: "a", Count: "1", Lease: -1}, free(1), []string{"gone a"}},
		"entered":                      {held(0, "a", "1"), held(1, "a", "2"), []string{"entered a x2"}},
		"left":                         {held(0, "a", "11"), held(1, "a", "9"), []string{"left a x9"}},
		"queued":                       {with(free(0), "a"), with(free(1), "a", "b", "c"), []string{"queued b at 2", "queued c at 3"}},
		"quit":                         {with(held(0, "x", "1"), "a", "b"), with(held(1, "x", "1"), "b"), []string{"quit a"}},
		"the next one got it": {
			with(held(0, "x", "1"), "a", "b"), told(with(held(1, "a", "1"), "b")), []string{"passed a from x x1"},
		},
		"who has gone may have had it": {
			with(held(0, "x", "1"), "a", "b", "c"), told(with(held(1, "b", "1"), "c")), []string{"passed b from x x1"},
		},
	} {
		l := &Lock{Name: "job"}
		l.Look(c.before)
		require.Equal(t, c.want, brief(l.Look(c.now)), what)
	}
}

func TestTheFirstLookTellsHowThingsAre(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]Sight{
		"held a x2": {Owner: "a", Count: "2", Queue: []string{"b"}},
		"free ":     {Queue: []string{"b"}},
		"released ": {Messages: 1},
	} {
		require.Equal(t, []string{want}, brief((&Lock{}).Look(s)))
	}
}

func TestEventsTellOfTheirMoment(t *testing.T) {
	t.Parallel()
	l := &Lock{Name: "job"}
	l.Look(Sight{At: at(0), Owner: "a", Count: "1", Lease: time.Minute})
	require.False(t, l.Idle())
	events := l.Look(Sight{At: at(1), Owner: "b", Count: "1", Lease: time.Second, Queue: []string{"c", "d"}, Messages: 7})
	require.Equal(t, Event{
		At: at(1), Name: "job", What: Passed, Owner: "b", From: "a", Count: "1", Lease: time.Second,
		Queue: 2, Next: "c", Messages: 7,
	}, events[0])
	require.Equal(t, Event{
		At: at(1), Name: "job", What: Queued, Owner: "d", Lease: -1, Place: 2, Queue: 2, Next: "c", Messages: 7,
	}, events[2])
	l.Look(Sight{At: at(2), Queue: []string{"c"}})
	require.False(t, l.Idle())
	events = l.Look(Sight{At: at(3)})
	require.Equal(t, []string{"quit c"}, brief(events))
	require.True(t, l.Idle())
}
