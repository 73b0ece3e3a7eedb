package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/tool/output"
)

// opened is a ledger of two processes, p and q, that are connected.
func opened() *ledger {
	l := newLedger(epoch, 2)
	l.apply(1, &event{Kind: ready, At: at(0), Owner: "p"})
	l.apply(2, &event{Kind: ready, At: at(0), Owner: "q"})
	return l
}

// visits enters that the owners came in this order, 10 ms after each other, and who
// was queued behind each: "p:1 < q:1 p:2".
func (l *ledger) visits(told ...string) *ledger {
	for i, text := range told {
		owner, rest, _ := strings.Cut(text, " < ")
		id := map[byte]int{'p': 1, 'q': 2}[owner[0]]
		l.apply(id, &event{Kind: waiting, At: at(10 * i)})
		l.apply(id, &event{Kind: acquired, At: at(10*i + 1), Owner: owner, Wait: time.Millisecond})
		l.apply(id, &event{
			Kind: released, At: at(10*i + 5), Owner: owner, Visit: int64(i + 1), Job: int64(i + 1), Queue: strings.Fields(rest),
		})
	}
	return l
}

// all is a harvest in which jobs 1 to n were done once.
func all(n int) *harvest {
	h := &harvest{jobs: n, done: map[int64]int64{}, cut: true}
	for job := 1; job <= n; job++ {
		h.done[int64(job)] = 1
	}
	return h
}

func TestInversionIsATurnThatWasSomebodyElsesWhoGotInLater(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what             string
		visits           []string
		inverted, judged int
	}{
		{"in turn", []string{"p:1 < q:1 p:2", "q:1 < p:2", "p:2"}, 0, 2},
		{"overtaken", []string{"p:1 < q:1 p:2", "p:2 < q:1", "q:1"}, 1, 2},
		{"somebody who came later", []string{"p:1 < q:1", "p:9 < q:1", "q:1"}, 1, 2},
		{"taken out of the queue and queued anew", []string{"p:1 < q:1 p:2", "p:2 < p:3 q:1", "p:3 < q:1", "q:1"}, 1, 3},
		{"dead in front", []string{"p:1 < q:7 p:2", "p:2 < q:8", "q:1"}, 0, 1},
		{"nobody queued", []string{"p:1", "q:1", "p:2"}, 0, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			l := opened().visits(c.visits...)
			inverted, judged := l.inversions()
			require.Equal(t, c.inverted, inverted)
			require.Equal(t, c.judged, judged)
			wrong := l.audit(all(len(c.visits)))
			require.Len(t, wrong, min(c.inverted, 1), "%v", wrong)
		})
	}
}

func TestInversionsAreJudgedByTheServersNumbersAndNotByArrivalOfTheReports(t *testing.T) {
	t.Parallel()
	l := opened().visits("p:1 < q:1 p:2", "q:1 < p:2", "p:2")
	l.claims[0], l.claims[2] = l.claims[2], l.claims[0]
	inverted, judged := l.inversions()
	require.Zero(t, inverted)
	require.Equal(t, 2, judged)
}

func TestJobsThatAreLostOrDoneTwiceAreWrong(t *testing.T) {
	t.Parallel()
	three := []string{"p:1", "q:1", "p:2"}
	require.Empty(t, opened().visits(three...).audit(all(3)))
	h := all(3)
	h.done[2] = 2
	require.Equal(t, []string{"1 jobs were done more than once", "job 2 was reported 1 times, and done 2 times"},
		opened().visits(three...).audit(h))
	h = all(3)
	h.left = []int64{3}
	require.Equal(t, []string{"1 jobs were done more than once"}, opened().visits(three...).audit(h), "done, and to be done again")
	h = all(3)
	h.jobs = 4
	require.Equal(t, []string{"1 jobs were lost"}, opened().visits(three...).audit(h))
	h.left = []int64{4}
	require.Empty(t, opened().visits(three...).audit(h), "the run was cut short")
	h.cut = false
	require.Equal(t, []string{"no process was killed", "1 jobs are left after 45s"}, opened().visits(three...).audit(h))
}

func TestVisitsThatNobodyReportedAndJobsOutOfOrderAreWrong(t *testing.T) {
	t.Parallel()
	l := opened().visits("p:1", "q:1", "p:2")
	l.claims[1].number = 7
	require.Contains(t, l.audit(all(3)), "visit 2 was never reported, or twice")
	l = opened().visits("p:1", "q:1", "p:2")
	l.claims[0].job, l.claims[1].job = 2, 1
	require.Equal(t, []string{"job 1 was claimed after job 2"}, l.audit(all(3)))
}

func TestTwoInsideAreWrongUnlessOneWasKilledThere(t *testing.T) {
	t.Parallel()
	l := opened().visits("p:1")
	l.apply(1, &event{Kind: acquired, At: at(50), Owner: "p:2"})
	l.killed(1, "p:2", at(60))
	l.apply(2, &event{Kind: found, Owner: "q:1", Found: "p:2"})
	require.Empty(t, l.audit(all(1)))
	l.apply(2, &event{Kind: found, Owner: "q:1", Found: "p:1"})
	require.Equal(t, []string{"two were inside, seen 1 times"}, l.audit(all(1)))
}

// killStory is a ledger in which process p died with two places in the queue.
func killStory() *ledger {
	l := opened().visits("p:1 < q:1", "q:1")
	l.apply(1, &event{Kind: acquired, At: at(100), Owner: "p:2"})
	l.killed(1, "p:2", at(150))
	l.apply(1, &event{Kind: gone, At: at(151), Text: "signal: killed"})
	l.saw([]string{"q:2", "p:3", "p:4", "q:3"}, at(160))
	return l
}

func TestDeadCostWhatTheirPlacesLast(t *testing.T) {
	t.Parallel()
	l := killStory()
	require.Equal(t, "dead:1", l.holderName())
	require.Empty(t, l.failure())
	l.apply(2, &event{Kind: waiting, At: at(160)})
	l.apply(2, &event{Kind: acquired, At: at(3150), Owner: "q:2", Wait: 3 * time.Second})
	require.Equal(t, "2", l.holderName())
	l.apply(2, &event{Kind: released, At: at(3160), Owner: "q:2", Visit: 3, Job: 3, Queue: []string{"p:3", "p:4", "q:3"}})
	l.saw([]string{"p:4", "q:3"}, at(5000))
	l.apply(2, &event{Kind: acquired, At: at(8150), Owner: "q:3", Wait: 8 * time.Second})
	l.saw([]string{}, at(8200))
	l.apply(2, &event{Kind: released, At: at(8160), Owner: "q:3", Visit: 4, Job: 4})
	l.apply(2, &event{Kind: gone, At: at(9000)})
	require.True(t, l.allGone())
	require.Equal(t, 5*time.Second, l.longestStall())
	require.Equal(t, 8*time.Second, l.longestWait())
	require.NotContains(t, l.ordinaryWaits(), 3*time.Second, "the wait for the dead is not an ordinary one")
	text := strings.Join(l.summary(all(4)), "\n")
	require.Contains(t, text, "kill        process 1 at 0.1 s, holding the lock, 2 places in the queue\n")
	require.Contains(t, text, "stall       5.00 s at most after the kill; nobody waited longer than 8.00 s\n")
	require.Contains(t, text, "inversions  0 in the 2 turns")
	h := all(4)
	h.cut = false
	require.Empty(t, l.audit(h))
}

func TestClaimingIsOverWhenTheJobsAreDoneAndTheDeadAreGone(t *testing.T) {
	t.Parallel()
	l := killStory()
	p := &claiming{ledger: l, jobs: 3}
	require.False(t, p.over(at(1000)), "a job is left")
	l.apply(2, &event{Kind: acquired, At: at(3150), Owner: "q:2"})
	l.apply(2, &event{Kind: released, At: at(3160), Owner: "q:2", Visit: 3, Job: 3})
	l.saw([]string{"p:3"}, at(3200))
	require.False(t, p.over(at(3200)), "the dead are queued")
	l.saw([]string{}, at(5000))
	require.True(t, p.over(at(5000)), "workers that are busy elsewhere are not waited for")

	l = opened().visits("p:1 < q:1", "q:1")
	require.False(t, (&claiming{ledger: l, jobs: 2}).over(at(1000)), "nobody was killed")
	require.True(t, (&claiming{ledger: l, jobs: 3}).over(at(46_000)))
}

func TestOneVisitThatTookLongMakesNobodySleepForLong(t *testing.T) {
	t.Parallel()
	h := &hand{}
	for i, v := range []struct{ took, rest time.Duration }{
		{900 * time.Millisecond, restAtLeast}, // the process has just begun
		{5 * time.Millisecond, 100 * time.Millisecond},
		{time.Second, 100 * time.Millisecond},
		{10 * time.Millisecond, 200 * time.Millisecond},
		{time.Millisecond, restAtLeast},
		{50 * time.Millisecond, restAtLeast},
		{60 * time.Millisecond, time.Second},
		{400 * time.Millisecond, 1200 * time.Millisecond},
		{300 * time.Millisecond, 6 * time.Second}, // so all visits take long here
	} {
		require.Equal(t, v.rest, h.rest(v.took), "visit %d", i+1)
	}
}

func TestClaimingPictureFitsEightyColumnsAndAlwaysHasTheSameHeight(t *testing.T) {
	t.Parallel()
	l := newLedger(epoch, crews)
	for _, c := range l.crews {
		c.pid, c.client = 4194304, string(rune('o'+c.id)) // p, q, r
	}
	p := &claiming{ledger: l, jobs: 5000, shelf: newShelf(nil, "redlatch-demo:12345678"), common: &workerConfig{Lease: lease}}
	v := &view{look: output.Look{Colours: true, Unicode: true}, headline: p.headline(), titles: p.titles()}
	height := len(p.picture(v, at(0)))
	check := func() string {
		t.Helper()
		lines := p.picture(v, at(99_000))
		require.Len(t, lines, height)
		for i, line := range lines {
			lines[i] = bare(line)
			require.LessOrEqual(t, len([]rune(lines[i])), 79, "%s", lines[i])
			require.NotContains(t, lines[i], "\x1b")
		}
		return strings.Join(lines, "\n")
	}
	check()
	l.visits("p:1 < q:1", "q:1")
	l.apply(1, &event{Kind: acquired, At: at(100), Owner: "p:2"})
	for range crews*handsOf - 1 {
		p.line = append(p.line, "p:3")
	}
	check()
	l.killed(1, "p:2", at(150))
	p.line = []string{"q:2", "p:3", "stranger", "r:1"}
	l.saw(p.line, at(160))
	require.Contains(t, check(), "\n  queue  2 ×1 ? 3\n")
	require.Contains(t, p.progress(at(1000)), "1.00 s  jobs 2     holder dead:1  queued 4 (1 dead)")
}
