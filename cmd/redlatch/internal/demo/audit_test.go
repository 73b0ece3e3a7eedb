package demo

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

// audited returns an audit of events. The owners of process n begin with the n-th letter.
func audited(events ...event) *audit {
	a := newAudit(start)
	for i, p := range a.processes {
		a.apply(p, &event{Kind: ready, At: start, Visit: string(rune('a' + i))})
	}
	return a.with(events...)
}

func (a *audit) with(events ...event) *audit {
	for i := range events {
		a.apply(a.by(&events[i]), &events[i])
	}
	return a
}

func (a *audit) by(e *event) *process { return a.processes[e.Visit[0]-'a'] }

func enters(ms int, visit string) event {
	return event{Kind: acquired, At: at(ms), Visit: visit, Wait: 10 * time.Millisecond}
}

func leaves(ms int, visit string) event { return event{Kind: released, At: at(ms), Visit: visit} }

func finds(visit, marker string) event { return event{Kind: found, Visit: visit, Found: marker} }

// finish adds finished visits, each an owner and the queue behind it: "a:1 < b:1 a:2".
func (a *audit) finish(texts ...string) *audit {
	for i, text := range texts {
		owner, rest, _ := strings.Cut(text, " < ")
		e := event{Kind: released, At: at(10 * i), Visit: owner + "#1", Round: int64(i + 1), Queue: strings.Fields(rest)}
		a.with(enters(10*i, e.Visit), e)
	}
	return a
}

func (a *audit) journal() (lines []string) {
	for i, r := range a.rounds {
		lines = append(lines, strings.Join([]string{string(r.owner[0] - 'a' + '1'), string(rune('1' + i))}, " "))
	}
	return lines
}

func TestCompleteCountPasses(t *testing.T) {
	t.Parallel()
	a := audited(enters(0, "a:1"), leaves(10, "a:1"), enters(20, "b:1"), leaves(30, "b:1"), enters(40, "b:2"))
	require.Empty(t, a.check(2, []string{"1 1", "2 2"}, true))
	require.EqualValues(t, 3, a.acquisitions)
	require.EqualValues(t, 1, a.handOvers, "the same worker again is no hand-over")
	require.Contains(t, a.progress(at(50)), "0.05 s  holder 2 ")
}

func TestLostOrUnreportedRoundFails(t *testing.T) {
	t.Parallel()
	a := audited(enters(0, "a:1"), leaves(10, "a:1"), enters(20, "b:1"), leaves(30, "b:1"))
	require.Equal(t, []string{
		"the counter is 1, the workers wrote 2 rounds: 1 were overwritten", "1 rounds have duplicate numbers",
	}, a.check(1, []string{"1 1", "2 1"}, true))
	require.Equal(t, []string{"process 2 reported 1 rounds, its journal has 2"}, a.check(3, []string{"1 1", "2 2", "2 3"}, true))
}

func TestKilledWorkerMayWriteOneUnreportedRound(t *testing.T) {
	t.Parallel()
	a := audited(enters(0, "a:1"), leaves(10, "a:1"), enters(20, "a:2"))
	a.killed(a.processes[0], "a:2", at(25))
	require.Empty(t, a.check(1, []string{"1 1"}, true))
	require.Empty(t, a.check(2, []string{"1 1", "1 2"}, true))
	require.Len(t, a.check(3, []string{"1 1", "1 2", "1 3"}, true), 1)
	require.Len(t, a.check(0, nil, true), 1)
}

func TestLeftoverMarkerExcusedOnlyForKilledVisit(t *testing.T) {
	t.Parallel()
	a := audited(enters(0, "a:1#1"), enters(20, "a:1#2"))
	a.killed(a.processes[0], "a:1#2", at(25))
	require.Zero(t, a.with(finds("b:1#1", "a:1#2")).violations())
	require.Equal(t, 1, a.with(finds("b:1#1", "a:1#1")).violations(), "an earlier visit of the same owner")
	require.Equal(t, 2, a.with(finds("b:1#1", "")).violations())
	require.Contains(t, a.check(0, nil, true), "two workers held the lock concurrently, seen 2 times")
}

func TestLostHoldMarkerExcusedInEitherReportOrder(t *testing.T) {
	t.Parallel()
	lostIt := event{Kind: lost, At: at(5), Visit: "a:1"}
	require.Zero(t, audited(lostIt, finds("b:1", "a:1")).violations())
	require.Zero(t, audited(finds("b:1", "a:1"), lostIt).violations())
	require.Equal(t, 1, audited(finds("b:1", "a:1")).violations())
}

func TestTakeoverSpansKillToNextAcquisition(t *testing.T) {
	t.Parallel()
	a := audited(enters(100, "a:1"))
	a.killed(a.processes[0], "a:1", at(150))
	require.Contains(t, a.progress(at(160)), "holder dead:1")
	a.with(enters(90, "b:0")) // read later than it happened
	require.Nil(t, a.successor)
	require.False(t, a.over(at(29_000), time.Second))
	require.True(t, a.over(at(31_000), time.Second))
	late := enters(3150, "b:1")
	late.Wait = 3 * time.Second
	a.with(late)
	a.sawQueue(nil, at(3151))
	require.NotContains(t, a.waits, 3*time.Second, "the wait for the dead is not an ordinary one")
	require.Len(t, a.with(enters(3200, "b:2")).waits, 2)
	require.False(t, a.over(at(4000), time.Second))
	require.True(t, a.over(at(4200), time.Second))
	require.Empty(t, a.check(0, nil, false))
	text := strings.Join(a.summary(0, 4*time.Second, nil), "\n")
	require.Contains(t, text, "take-over   process 2, 3s after the kill (a dead holder's lease: 3s)")
	require.Contains(t, text, "OK:")
}

func TestFailedProcessFailsDemoUnlessKilled(t *testing.T) {
	t.Parallel()
	a := audited(event{Kind: gone, Visit: "a", Text: "signal: killed"})
	require.Equal(t, "process 1: signal: killed", a.failure())
	a = audited(enters(0, "a:1"))
	a.killed(a.processes[0], "a:1", at(1))
	require.Empty(t, a.with(event{Kind: gone, Visit: "a", Text: "signal: killed"}, event{Kind: gone, Visit: "b"}).failure())
	unreadable, exited := event{Kind: gone, Visit: "c", Text: "why"}, event{Kind: gone, Visit: "c", Text: "exit status 1"}
	require.Equal(t, "process 3: why", a.with(unreadable, exited).failure())
}

func TestMedianIsActualWait(t *testing.T) {
	t.Parallel()
	a := audited()
	require.Equal(t, "p50 -, p99 -", a.percentiles())
	for _, ms := range []int{5, 1, 4, 2, 3, 1500} {
		a.waits = append(a.waits, time.Duration(ms)*time.Millisecond)
	}
	require.Equal(t, "p50 3ms, p99 5ms", a.percentiles())
	require.Equal(t, 5*time.Millisecond, a.waits[0], "the waits were sorted")
	require.Equal(t, "1.5s", brief(1504*time.Millisecond))
}

func TestInversionIsRoundBeforeQueuedOwner(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what             string
		rounds           []string
		inverted, judged int
	}{
		{"in turn", []string{"a:1 < b:1 a:2", "b:1 < a:2", "a:2"}, 0, 2},
		{"overtaken", []string{"a:1 < b:1 a:2", "a:2 < b:1", "b:1"}, 1, 2},
		{"an owner that came later", []string{"a:1 < b:1", "a:9 < b:1", "b:1"}, 1, 2},
		{"evicted and queued anew", []string{"a:1 < b:1 a:2", "a:2 < a:3 b:1", "a:3 < b:1", "b:1"}, 1, 3},
		{"dead in front", []string{"a:1 < b:7 a:2", "a:2 < b:8", "b:1"}, 0, 1},
		{"an owner that comes again", []string{"a:1 < b:1 a:1", "b:1 < a:1", "a:1"}, 0, 2},
		{"empty queue", []string{"a:1", "b:1", "a:2"}, 0, 0},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			a := audited().finish(c.rounds...)
			inverted, judged := a.inversions()
			require.Equal(t, c.inverted, inverted)
			require.Equal(t, c.judged, judged)
			wrong := a.check(int64(len(c.rounds)), a.journal(), true)
			require.Len(t, wrong, min(c.inverted, 1), "%v", wrong)
		})
	}
}

func TestInversionsUseServerOrder(t *testing.T) {
	t.Parallel()
	a := audited().finish("a:1 < b:1 a:2", "b:1 < a:2", "a:2")
	a.rounds[0], a.rounds[2] = a.rounds[2], a.rounds[0]
	inverted, judged := a.inversions()
	require.Zero(t, inverted)
	require.Equal(t, 2, judged)
}

func TestDemoEndsAfterDeadWaitersLeaveQueue(t *testing.T) {
	t.Parallel()
	a := audited().finish("a:1 < b:1", "b:1").with(enters(100, "a:2#2"))
	a.killed(a.processes[0], "a:2#2", at(150))
	a.sawQueue([]string{"b:2", "a:3", "a:4", "b:3"}, at(160))
	require.Contains(t, a.progress(at(1000)), "holder dead:1")
	require.Contains(t, a.progress(at(1000)), " (2 dead)")
	require.Contains(t, a.check(2, a.journal(), false), "no worker acquired the lock within 30s of the kill")
	a.with(enters(3150, "b:2#1"))
	a.sawQueue([]string{"a:4", "b:3"}, at(5000))
	require.False(t, a.over(at(9000), time.Second), "a dead worker is queued")
	require.Equal(t, []string{"dead waiters were still queued 30s after the kill"}, a.check(2, a.journal(), false))
	a.sawQueue([]string{"b:3"}, at(8150))
	require.False(t, a.over(at(9000), time.Second), "too soon")
	require.True(t, a.over(at(9200), time.Second))
	require.Empty(t, a.check(2, a.journal(), false))
	text := strings.Join(a.summary(2, 4*time.Second, nil), "\n")
	require.Contains(t, text, "dead        2 places in the queue, the last evicted 8s after the kill\n")
	require.Contains(t, text, "inversions  0 in 1 rounds")
}
