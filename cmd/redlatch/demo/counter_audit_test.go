package demo

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/tool/output"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }

// audited is an audit of two workers that has these events.
func audited(events ...report) *counterAudit {
	a := newCounterAudit(start, 3*time.Second, 2)
	for i := range events {
		a.apply(events[i].id, &events[i].event)
	}
	return a
}

func enters(id, ms int, owner string) report {
	return report{id, event{Kind: acquired, At: at(ms), Owner: owner, Wait: 10 * time.Millisecond}}
}

func leaves(id, ms int, owner string) report {
	return report{id, event{Kind: released, At: at(ms), Owner: owner}}
}

func finds(id, ms int, owner, other string) report {
	return report{id, event{Kind: found, At: at(ms), Owner: owner, Found: other}}
}

func TestCompleteCountPasses(t *testing.T) {
	t.Parallel()
	a := audited(enters(1, 0, "a:1"), leaves(1, 10, "a:1"), enters(2, 20, "b:1"), leaves(2, 30, "b:1"), enters(2, 40, "b:2"))
	require.Empty(t, a.check(2, map[int]int64{1: 1, 2: 1}))
	require.EqualValues(t, 3, a.acquisitions)
	require.EqualValues(t, 1, a.handOvers, "the same worker again is no hand-over")
	require.Equal(t, "2", a.holderName())
}

func TestLostRoundsAndUnreportedRoundsAreWrong(t *testing.T) {
	t.Parallel()
	a := audited(enters(1, 0, "a:1"), leaves(1, 10, "a:1"), enters(2, 20, "b:1"), leaves(2, 30, "b:1"))
	require.Equal(t, []string{"the counter is 1, the workers wrote 2 rounds: 1 were overwritten"},
		a.check(1, map[int]int64{1: 1, 2: 1}))
	require.Equal(t, []string{"worker 2 reported 1 rounds, its journal has 2"}, a.check(3, map[int]int64{1: 1, 2: 2}))
}

func TestKilledWorkerMayHaveWrittenOneRoundMoreThanItReported(t *testing.T) {
	t.Parallel()
	a := audited(enters(1, 0, "a:1"), leaves(1, 10, "a:1"), enters(1, 20, "a:2"))
	a.killed(1, at(25))
	require.Empty(t, a.check(1, map[int]int64{1: 1}))
	require.Empty(t, a.check(2, map[int]int64{1: 2}))
	require.Len(t, a.check(3, map[int]int64{1: 3}), 1)
	require.Len(t, a.check(0, map[int]int64{}), 1)
}

func TestMarkerLeftBehindIsExcusedForTheKilledAcquisitionOnly(t *testing.T) {
	t.Parallel()
	a := audited(enters(1, 0, "a:1"), enters(1, 20, "a:2"))
	a.killed(1, at(25))
	a.apply(2, &event{Kind: found, Found: "a:2"})
	require.Zero(t, a.violations())
	a.apply(2, &event{Kind: found, Found: "a:1"})
	require.Equal(t, 1, a.violations(), "an earlier acquisition of the same worker")
	a.apply(2, &event{Kind: found, Found: "none"})
	require.Equal(t, 2, a.violations())
	require.Contains(t, a.check(0, map[int]int64{}), "two were inside, seen 2 times")
}

func TestMarkerOfALostHoldIsExcusedWhicheverReportComesFirst(t *testing.T) {
	t.Parallel()
	lostIt := report{1, event{Kind: lost, At: at(5), Owner: "a:1"}}
	for _, order := range [][]report{
		{lostIt, finds(2, 6, "b:1", "a:1")},
		{finds(2, 6, "b:1", "a:1"), lostIt},
	} {
		require.Zero(t, audited(order...).violations())
	}
	require.Equal(t, 1, audited(finds(2, 6, "b:1", "a:1")).violations())
}

func TestTakeOverIsFromTheKillToTheNextAcquisition(t *testing.T) {
	t.Parallel()
	a := audited(enters(1, 100, "a:1"))
	a.killed(1, at(150))
	require.Equal(t, "dead:1", a.holderName())
	a.apply(2, &event{Kind: acquired, At: at(90), Owner: "b:0"}) // read late, happened before
	require.Nil(t, a.successor)
	late := enters(2, 3150, "b:1")
	late.event.Wait = 3 * time.Second
	a.apply(2, &late.event)
	require.Equal(t, 3*time.Second, a.takeOver())
	require.NotContains(t, a.waits, 3*time.Second, "the wait for the dead is not an ordinary one")
	after := enters(2, 3200, "b:2")
	a.apply(2, &after.event)
	require.Len(t, a.waits, 3)
	text := strings.Join(a.summary(&result{took: 4 * time.Second, counter: 0}), "\n")
	require.Contains(t, text, "take-over   worker 2, 3.00 s after the kill (a dead holder's lease: 3 s)")
	require.Contains(t, text, "OK:")
	require.Contains(t, a.progress(at(4000)), "4.00 s  holder 2       waiting none")
}

func TestWorkerThatEndsBadlyIsAFailureUnlessItWasKilled(t *testing.T) {
	t.Parallel()
	a := audited(report{1, event{Kind: gone, Text: "signal: killed"}})
	require.Equal(t, "worker 1: signal: killed", a.failure())
	a = audited(enters(1, 0, "a:1"))
	a.killed(1, at(1))
	a.apply(1, &event{Kind: gone, Text: "signal: killed"})
	a.apply(2, &event{Kind: gone})
	require.Empty(t, a.failure())
	a.apply(2, &event{Kind: failed, Text: "why"})
	a.apply(2, &event{Kind: gone, Text: "exit status 1"})
	require.Equal(t, "worker 2: why", a.failure())
}

func TestPercentileIsOneOfTheWaits(t *testing.T) {
	t.Parallel()
	require.Zero(t, percentile(nil, 50))
	waits := []time.Duration{5, 1, 4, 2, 3}
	require.Equal(t, time.Duration(3), percentile(waits, 50))
	require.Equal(t, time.Duration(4), percentile(waits, 99))
	require.Equal(t, time.Duration(5), percentile(waits, 100))
	require.Equal(t, time.Duration(5), waits[0], "the caller's slice was sorted")
	require.Equal(t, "1.5 ms", millis(1500*time.Microsecond))
	require.Equal(t, "15 ms", millis(15*time.Millisecond))
}

func TestExitReasonIsTheLastErrorLine(t *testing.T) {
	t.Parallel()
	require.Empty(t, exitReason(nil, bytes.NewBufferString("noise")))
	require.Equal(t, "why", exitReason(errors.New("why"), bytes.NewBufferString("noise\n")))
}

// bare takes the escape sequences out of a line.
func bare(line string) string {
	for _, c := range []output.Colour{output.Green, output.Yellow, output.Red, output.Bold, output.Dim, "\x1b[0m"} {
		line = strings.ReplaceAll(line, string(c), "")
	}
	return line
}

func TestPictureFitsEightyColumnsAndAlwaysHasTheSameHeight(t *testing.T) {
	t.Parallel()
	a := newCounterAudit(start, 3*time.Second, 4)
	for _, c := range a.workers {
		c.pid = 4194304 // the largest there is
	}
	p := &counting{audit: a, until: 10 * time.Second}
	v := &view{look: output.Look{Colours: true, Unicode: true}, headline: p.headline(), titles: []string{"server", "lock"}}
	height := len(p.picture(v, at(0)))
	step := func(id int, e event) {
		a.apply(id, &e)
		for range laneWidth / 3 {
			p.picture(v, at(99_000))
		}
		lines := p.picture(v, at(99_000))
		require.Len(t, lines, height)
		for _, line := range lines {
			require.LessOrEqual(t, len([]rune(bare(line))), 79, "%s", bare(line))
			require.NotContains(t, bare(line), "\x1b")
		}
	}
	for id := 1; id <= 4; id++ {
		step(id, event{Kind: waiting, At: at(id)})
		step(id, event{Kind: acquired, At: at(10 * id), Owner: "o", Wait: 12 * time.Second})
	}
	a.killed(4, at(50))
	step(3, event{Kind: found, Found: "p"})
	step(2, event{Kind: lost, At: at(99_000), Owner: "q"})
	step(1, event{Kind: acquired, At: at(3000), Owner: "o"})
	require.Contains(t, bare(p.picture(v, at(99_000))[8]), "KILLED")
}
