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

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(ms int) time.Time { return epoch.Add(time.Duration(ms) * time.Millisecond) }

// story is a tally of two workers that have heard these events.
func story(events ...report) *tally {
	t := newTally(epoch, 3*time.Second, 2)
	for i := range events {
		t.apply(events[i].id, &events[i].event)
	}
	return t
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

func TestBooksThatAddUpAreGreen(t *testing.T) {
	t.Parallel()
	b := story(enters(1, 0, "a:1"), leaves(1, 10, "a:1"), enters(2, 20, "b:1"), leaves(2, 30, "b:1"), enters(2, 40, "b:2"))
	require.Empty(t, b.audit(2, map[int]int64{1: 1, 2: 1}))
	require.EqualValues(t, 3, b.acquisitions)
	require.EqualValues(t, 1, b.handOvers, "the same worker again is no hand-over")
	require.Equal(t, "2", b.holderName())
}

func TestLostRoundsAndUnreportedRoundsAreWrong(t *testing.T) {
	t.Parallel()
	b := story(enters(1, 0, "a:1"), leaves(1, 10, "a:1"), enters(2, 20, "b:1"), leaves(2, 30, "b:1"))
	require.Equal(t, []string{"the counter is 1, the workers wrote 2 rounds: 1 were overwritten"},
		b.audit(1, map[int]int64{1: 1, 2: 1}))
	require.Equal(t, []string{"worker 2 reported 1 rounds, its journal has 2"}, b.audit(3, map[int]int64{1: 1, 2: 2}))
}

func TestKilledWorkerMayHaveWrittenOneRoundMoreThanItReported(t *testing.T) {
	t.Parallel()
	b := story(enters(1, 0, "a:1"), leaves(1, 10, "a:1"), enters(1, 20, "a:2"))
	b.killed(1, at(25))
	require.Empty(t, b.audit(1, map[int]int64{1: 1}))
	require.Empty(t, b.audit(2, map[int]int64{1: 2}))
	require.Len(t, b.audit(3, map[int]int64{1: 3}), 1)
	require.Len(t, b.audit(0, map[int]int64{}), 1)
}

func TestMarkerLeftBehindIsExcusedForTheKilledAcquisitionOnly(t *testing.T) {
	t.Parallel()
	b := story(enters(1, 0, "a:1"), enters(1, 20, "a:2"))
	b.killed(1, at(25))
	b.apply(2, &event{Kind: found, Found: "a:2"})
	require.Zero(t, b.violations())
	b.apply(2, &event{Kind: found, Found: "a:1"})
	require.Equal(t, 1, b.violations(), "an earlier acquisition of the same worker")
	b.apply(2, &event{Kind: found, Found: "nobody"})
	require.Equal(t, 2, b.violations())
	require.Contains(t, b.audit(0, map[int]int64{}), "two were inside, seen 2 times")
}

func TestMarkerOfALostHoldIsExcusedWhicheverReportComesFirst(t *testing.T) {
	t.Parallel()
	lostIt := report{1, event{Kind: lost, At: at(5), Owner: "a:1"}}
	for _, order := range [][]report{
		{lostIt, finds(2, 6, "b:1", "a:1")},
		{finds(2, 6, "b:1", "a:1"), lostIt},
	} {
		require.Zero(t, story(order...).violations())
	}
	require.Equal(t, 1, story(finds(2, 6, "b:1", "a:1")).violations())
}

func TestTakeOverIsFromTheKillToTheNextOneInside(t *testing.T) {
	t.Parallel()
	b := story(enters(1, 100, "a:1"))
	b.killed(1, at(150))
	require.Equal(t, "dead:1", b.holderName())
	b.apply(2, &event{Kind: acquired, At: at(90), Owner: "b:0"}) // read late, happened before
	require.Nil(t, b.heir)
	late := enters(2, 3150, "b:1")
	late.event.Wait = 3 * time.Second
	b.apply(2, &late.event)
	require.Equal(t, 3*time.Second, b.takeOver())
	require.NotContains(t, b.waits, 3*time.Second, "the wait for the dead is not an ordinary one")
	after := enters(2, 3200, "b:2")
	b.apply(2, &after.event)
	require.Len(t, b.waits, 3)
	text := strings.Join(b.summary(&result{took: 4 * time.Second, counter: 0}), "\n")
	require.Contains(t, text, "take-over   worker 2, 3.00 s after the kill (a dead holder's lease: 3 s)")
	require.Contains(t, text, "OK:")
	require.Contains(t, b.progress(at(4000)), "4.00 s  holder 2       waiting none")
}

func TestWorkerThatEndsBadlyIsAFailureUnlessItWasKilled(t *testing.T) {
	t.Parallel()
	b := story(report{1, event{Kind: gone, Text: "signal: killed"}})
	require.Equal(t, "worker 1: signal: killed", b.failure())
	b = story(enters(1, 0, "a:1"))
	b.killed(1, at(1))
	b.apply(1, &event{Kind: gone, Text: "signal: killed"})
	b.apply(2, &event{Kind: gone})
	require.Empty(t, b.failure())
	b.apply(2, &event{Kind: failed, Text: "why"})
	b.apply(2, &event{Kind: gone, Text: "exit status 1"})
	require.Equal(t, "worker 2: why", b.failure())
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

func TestVerdictIsTheLastComplaint(t *testing.T) {
	t.Parallel()
	require.Empty(t, verdict(nil, bytes.NewBufferString("noise")))
	require.Equal(t, "why", verdict(errors.New("why"), bytes.NewBufferString("noise\n")))
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
	b := newTally(epoch, 3*time.Second, 4)
	for _, c := range b.workers {
		c.pid = 4194304 // the largest there is
	}
	p := &counting{tally: b, until: 10 * time.Second}
	v := &view{look: output.Look{Colours: true, Unicode: true}, headline: p.headline(), titles: []string{"server", "lock"}}
	height := len(p.picture(v, at(0)))
	step := func(id int, e event) {
		b.apply(id, &e)
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
	b.killed(4, at(50))
	step(3, event{Kind: found, Found: "p"})
	step(2, event{Kind: lost, At: at(99_000), Owner: "q"})
	step(1, event{Kind: acquired, At: at(3000), Owner: "o"})
	require.Contains(t, bare(p.picture(v, at(99_000))[8]), "KILLED")
}
