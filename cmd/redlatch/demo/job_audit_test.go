package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/tool/output"
)

// auditOfTwo is an audit of two processes, p and q, that are connected.
func auditOfTwo() *jobAudit {
	a := newJobAudit(start, 2)
	a.apply(1, &event{Kind: ready, At: at(0), Owner: "p"})
	a.apply(2, &event{Kind: ready, At: at(0), Owner: "q"})
	return a
}

// visits records visits by these owners in this order, 10 ms after each other, and the
// queue behind each: "p:1 < q:1 p:2".
func (a *jobAudit) visits(texts ...string) *jobAudit {
	for i, text := range texts {
		owner, rest, _ := strings.Cut(text, " < ")
		id := map[byte]int{'p': 1, 'q': 2}[owner[0]]
		a.apply(id, &event{Kind: waiting, At: at(10 * i)})
		a.apply(id, &event{Kind: acquired, At: at(10*i + 1), Owner: owner, Wait: time.Millisecond})
		a.apply(id, &event{
			Kind: released, At: at(10*i + 5), Owner: owner, Visit: int64(i + 1), Job: int64(i + 1), Queue: strings.Fields(rest),
		})
	}
	return a
}

// all is a harvest in which jobs 1 to n were done once.
func all(n int) *jobTotals {
	totals := &jobTotals{jobs: n, done: map[int64]int64{}, cut: true}
	for job := 1; job <= n; job++ {
		totals.done[int64(job)] = 1
	}
	return totals
}

func TestInversionIsAVisitBeforeAQueuedOwnerThatVisitsLater(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what             string
		visits           []string
		inverted, judged int
	}{
		{"in turn", []string{"p:1 < q:1 p:2", "q:1 < p:2", "p:2"}, 0, 2},
		{"overtaken", []string{"p:1 < q:1 p:2", "p:2 < q:1", "q:1"}, 1, 2},
		{"an owner that came later", []string{"p:1 < q:1", "p:9 < q:1", "q:1"}, 1, 2},
		{"evicted and queued anew", []string{"p:1 < q:1 p:2", "p:2 < p:3 q:1", "p:3 < q:1", "q:1"}, 1, 3},
		{"dead in front", []string{"p:1 < q:7 p:2", "p:2 < q:8", "q:1"}, 0, 1},
		{"empty queue", []string{"p:1", "q:1", "p:2"}, 0, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			a := auditOfTwo().visits(c.visits...)
			inverted, judged := a.inversions()
			require.Equal(t, c.inverted, inverted)
			require.Equal(t, c.judged, judged)
			wrong := a.check(all(len(c.visits)))
			require.Len(t, wrong, min(c.inverted, 1), "%v", wrong)
		})
	}
}

func TestInversionsAreJudgedByTheServersNumbersAndNotByTheOrderOfReports(t *testing.T) {
	t.Parallel()
	a := auditOfTwo().visits("p:1 < q:1 p:2", "q:1 < p:2", "p:2")
	a.claims[0], a.claims[2] = a.claims[2], a.claims[0]
	inverted, judged := a.inversions()
	require.Zero(t, inverted)
	require.Equal(t, 2, judged)
}

func TestJobsThatAreLostOrDoneTwiceAreWrong(t *testing.T) {
	t.Parallel()
	three := []string{"p:1", "q:1", "p:2"}
	require.Empty(t, auditOfTwo().visits(three...).check(all(3)))
	totals := all(3)
	totals.done[2] = 2
	require.Equal(t, []string{"1 jobs were done more than once", "job 2 was reported 1 times, and done 2 times"},
		auditOfTwo().visits(three...).check(totals))
	totals = all(3)
	totals.left = []int64{3}
	require.Equal(t, []string{"1 jobs were done more than once"}, auditOfTwo().visits(three...).check(totals), "done, and to be done again")
	totals = all(3)
	totals.jobs = 4
	require.Equal(t, []string{"1 jobs were lost"}, auditOfTwo().visits(three...).check(totals))
	totals.left = []int64{4}
	require.Empty(t, auditOfTwo().visits(three...).check(totals), "the run was cut short")
	totals.cut = false
	require.Equal(t, []string{"no process was killed", "1 jobs are left after 45s"}, auditOfTwo().visits(three...).check(totals))
}

func TestUnreportedVisitsAndJobsOutOfOrderAreWrong(t *testing.T) {
	t.Parallel()
	a := auditOfTwo().visits("p:1", "q:1", "p:2")
	a.claims[1].number = 7
	require.Contains(t, a.check(all(3)), "visit 2 was never reported, or twice")
	a = auditOfTwo().visits("p:1", "q:1", "p:2")
	a.claims[0].job, a.claims[1].job = 2, 1
	require.Equal(t, []string{"job 1 was claimed after job 2"}, a.check(all(3)))
}

func TestTwoInsideAreWrongUnlessOneWasKilledThere(t *testing.T) {
	t.Parallel()
	a := auditOfTwo().visits("p:1")
	a.apply(1, &event{Kind: acquired, At: at(50), Owner: "p:2"})
	a.killed(1, "p:2", at(60))
	a.apply(2, &event{Kind: found, Owner: "q:1", Found: "p:2"})
	require.Empty(t, a.check(all(1)))
	a.apply(2, &event{Kind: found, Owner: "q:1", Found: "p:1"})
	require.Equal(t, []string{"two were inside, seen 1 times"}, a.check(all(1)))
}

// An owner of a fair lock may come again: its visits are told apart by their numbers.
func TestAKillExcusesOneVisitOfAnOwner(t *testing.T) {
	t.Parallel()
	a := auditOfTwo().visits("p:1")
	a.apply(2, &event{Kind: found, Owner: "q:1#1", Found: "p:2#7"})
	a.killed(1, "p:2#8", at(60))
	require.Equal(t, []string{"two were inside, seen 1 times"}, a.check(all(1)))
	a = auditOfTwo().visits("p:1 < q:1 p:1", "q:1 < p:1", "p:1")
	inverted, judged := a.inversions()
	require.Zero(t, inverted)
	require.Equal(t, 2, judged)
	a = auditOfTwo().visits("p:1")
	for range 2 {
		a.apply(1, &event{Kind: acquired, At: at(70), Owner: "p:2#9"})
	}
	require.Contains(t, a.check(all(1)), "1 visits could not be told from others")
	a = auditOfTwo()
	a.apply(1, &event{Kind: released, Owner: "p:2#8", Visit: 1, Job: 1})
	require.Equal(t, "p:2", a.claims[0].owner)
}

// killStory is an audit in which process p died with two places in the queue.
func killStory() *jobAudit {
	a := auditOfTwo().visits("p:1 < q:1", "q:1")
	a.apply(1, &event{Kind: acquired, At: at(100), Owner: "p:2"})
	a.killed(1, "p:2", at(150))
	a.apply(1, &event{Kind: gone, At: at(151), Text: "signal: killed"})
	a.sawQueue([]string{"q:2", "p:3", "p:4", "q:3"}, at(160))
	return a
}

func TestDeadWaitersDelayTheQueueUntilTheirEntriesExpire(t *testing.T) {
	t.Parallel()
	a := killStory()
	require.Equal(t, "dead:1", a.holderName())
	require.Empty(t, a.failure())
	a.apply(2, &event{Kind: waiting, At: at(160)})
	a.apply(2, &event{Kind: acquired, At: at(3150), Owner: "q:2", Wait: 3 * time.Second})
	require.Equal(t, "2", a.holderName())
	a.apply(2, &event{Kind: released, At: at(3160), Owner: "q:2", Visit: 3, Job: 3, Queue: []string{"p:3", "p:4", "q:3"}})
	a.sawQueue([]string{"p:4", "q:3"}, at(5000))
	a.apply(2, &event{Kind: acquired, At: at(8150), Owner: "q:3", Wait: 8 * time.Second})
	a.sawQueue([]string{}, at(8200))
	a.apply(2, &event{Kind: released, At: at(8160), Owner: "q:3", Visit: 4, Job: 4})
	a.apply(2, &event{Kind: gone, At: at(9000)})
	require.True(t, a.allGone())
	require.Equal(t, 5*time.Second, a.longestStall())
	require.Equal(t, 8*time.Second, a.longestWait())
	require.NotContains(t, a.ordinaryWaits(), 3*time.Second, "the wait for the dead is not an ordinary one")
	text := strings.Join(a.summary(all(4)), "\n")
	require.Contains(t, text, "kill        process 1 at 0.1 s, holding the lock, 2 places in the queue\n")
	require.Contains(t, text, "stall       5.00 s at most after the kill; longest wait 8.00 s\n")
	require.Contains(t, text, "inversions  0 in the 2 turns")
	totals := all(4)
	totals.cut = false
	require.Empty(t, a.check(totals))
}

func TestClaimingEndsWhenJobsAreDoneAndDeadEntriesAreGone(t *testing.T) {
	t.Parallel()
	a := killStory()
	p := &claiming{audit: a, jobs: 3}
	require.False(t, p.over(at(1000)), "a job is left")
	a.apply(2, &event{Kind: acquired, At: at(3150), Owner: "q:2"})
	a.apply(2, &event{Kind: released, At: at(3160), Owner: "q:2", Visit: 3, Job: 3})
	a.sawQueue([]string{"p:3"}, at(3200))
	require.False(t, p.over(at(3200)), "the dead are queued")
	a.sawQueue([]string{}, at(5000))
	require.True(t, p.over(at(5000)), "workers that are busy elsewhere are not waited for")

	a = auditOfTwo().visits("p:1 < q:1", "q:1")
	require.False(t, (&claiming{audit: a, jobs: 2}).over(at(1000)), "no process was killed")
	require.True(t, (&claiming{audit: a, jobs: 3}).over(at(46_000)))
}

func TestOneLongVisitDoesNotCauseALongPause(t *testing.T) {
	t.Parallel()
	w := &jobWorker{}
	for i, v := range []struct{ took, rest time.Duration }{
		{900 * time.Millisecond, pauseAtLeast}, // the process has just begun
		{5 * time.Millisecond, 100 * time.Millisecond},
		{time.Second, 100 * time.Millisecond},
		{10 * time.Millisecond, 200 * time.Millisecond},
		{time.Millisecond, pauseAtLeast},
		{50 * time.Millisecond, pauseAtLeast},
		{60 * time.Millisecond, time.Second},
		{400 * time.Millisecond, 1200 * time.Millisecond},
		{300 * time.Millisecond, 6 * time.Second}, // so all visits take long here
	} {
		require.Equal(t, v.rest, w.nextPause(v.took), "visit %d", i+1)
	}
}

func TestClaimingPictureFitsEightyColumnsAndAlwaysHasTheSameHeight(t *testing.T) {
	t.Parallel()
	a := newJobAudit(start, processes)
	for _, c := range a.processes {
		c.pid, c.client = 4194304, string(rune('o'+c.id)) // p, q, r
	}
	p := &claiming{audit: a, jobs: 5000, state: newJobState(nil, "redlatch-demo:12345678"), common: &workerConfig{Lease: lease}}
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
	a.visits("p:1 < q:1", "q:1")
	a.apply(1, &event{Kind: acquired, At: at(100), Owner: "p:2"})
	for range processes*workersEach - 1 {
		p.queue = append(p.queue, "p:3")
	}
	check()
	a.killed(1, "p:2", at(150))
	p.queue = []string{"q:2", "p:3", "stranger", "r:1"}
	a.sawQueue(p.queue, at(160))
	require.Contains(t, check(), "\n  queue  2 ×1 ? 3\n")
	require.Contains(t, p.progress(at(1000)), "1.00 s  jobs 2     holder dead:1  queued 4 (1 dead)")
}
