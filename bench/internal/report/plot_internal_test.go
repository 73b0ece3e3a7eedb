package report

import (
	"fmt"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/run"
	"github.com/redlatch/redlatch/bench/internal/work"
)

// drawable are a case, all contestants, and one sample of each at each level.
func drawable(logarithmic bool) (run.Case, []run.Entrant, []run.Sample) {
	c := run.Case{
		ID: "x", Title: "One read/write lock, one process: nine of ten acquisitions read", Level: "goroutines",
		Levels: []int{1, 16, 10_000}, Log: logarithmic, Figures: []run.Figure{{Name: work.Rate, Title: "per second", More: true}},
	}
	var entrants []run.Entrant
	var samples []run.Sample
	for i, of := range contest.All() {
		entrants = append(entrants, run.Entrant{Label: of.Name, Contestant: of})
		for _, level := range c.Levels {
			samples = append(samples, run.Sample{
				Case: c.ID, Place: host.Apart, Level: level, Round: 1, Entrant: of.Name,
				Values: work.Values{work.Rate: float64(70*(i+1) + level)},
			})
		}
	}
	return c, entrants, samples
}

func TestAxesEndWhereTheDataEnd(t *testing.T) {
	t.Parallel()
	for _, logarithmic := range []bool{true, false} {
		c, entrants, samples := drawable(logarithmic)
		p, _, err := chart(c, host.Apart, entrants, samples)
		require.NoError(t, err)
		assert.InDelta(t, 1, p.X.Min, 0)
		assert.InDelta(t, 10_000, p.X.Max, 0)
		assert.InDelta(t, map[bool]float64{true: 20_000, false: 15_000}[logarithmic], p.Y.Max, 0, "the highest figure is 10,910")
		assert.InDelta(t, map[bool]float64{true: 50, false: 0}[logarithmic], p.Y.Min, 0, "the lowest is 71")
		var labels []string
		for _, tick := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
			labels = append(labels, tick.Label)
		}
		assert.Equal(t, []string{"1", "16", "10,000"}, labels)
		for _, tick := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
			assert.LessOrEqual(t, tick.Value, p.Y.Max)
			assert.NotContains(t, tick.Label, ".", "%v", tick.Value)
		}
	}
}

var (
	texts  = regexp.MustCompile(`<text x="([0-9.]+)"[^>]*>([^<]*)</text>`)
	points = regexp.MustCompile(`[ML]([0-9.]+),[0-9.]+`)
	curves = regexp.MustCompile(`<path d="([^"]+)" style="fill:none;stroke:(#[0-9A-F]{6})`)
	family = regexp.MustCompile(`font-family:([^;"]+);`)
)

func TestTheLegendIsBesideTheCurvesAndFontsHaveAFallback(t *testing.T) {
	t.Parallel()
	c, entrants, samples := drawable(true)
	p, legend, err := chart(c, host.Apart, entrants, samples)
	require.NoError(t, err)
	image, err := svg(p, legend)
	require.NoError(t, err)
	beside := (plotWidth - legendWidth).Points()
	named := 0
	for _, m := range texts.FindAllSubmatch(image, -1) {
		x, err := strconv.ParseFloat(string(m[1]), 64)
		require.NoError(t, err)
		style := legend.TextStyle
		assert.Less(t, x+style.Width(string(m[2])).Points(), plotWidth.Points(), "%s is cut", m[2])
		for _, e := range entrants {
			if string(m[2]) == e.Label {
				named++
				assert.Greater(t, x, beside, e.Label)
			}
		}
	}
	assert.Equal(t, len(entrants), named)
	for _, m := range curves.FindAllSubmatch(image, -1) {
		corners := points.FindAllSubmatch(m[1], -1)
		if begins, err := strconv.ParseFloat(string(corners[0][1]), 64); err != nil || begins > beside {
			continue // of the legend
		}
		for _, at := range corners {
			x, err := strconv.ParseFloat(string(at[1]), 64)
			require.NoError(t, err)
			assert.LessOrEqual(t, x, beside)
		}
	}
	for _, m := range family.FindAllSubmatch(image, -1) {
		assert.Contains(t, string(m[1]), ",sans-serif")
	}
}

// Whichever others are in a plot, a contestant looks the same, and like no other.
func TestEachContestantHasOneColourInAllPlots(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, of := range contest.All() {
		l := lookOf(run.Entrant{Label: of.Name, Contestant: of})
		if of.Fair || of.ReadWrite || of.Async || of.Cluster || of.Semaphore != "" {
			continue // as the plain lock of the library
		}
		name := fmt.Sprint(l.colour)
		assert.Empty(t, seen[name], "%s looks like another", of.Name)
		seen[name] = of.Name
		for _, kind := range []string{"-fair", "-rw", "-async", "-permits", "-counter", "-cluster"} {
			assert.Equal(t, l.colour, lookOf(run.Entrant{Label: of.Name + kind, Contestant: of}).colour)
		}
	}
	assert.Len(t, seen, len(colours), "a contestant has no colour")
}

func TestStepsAreRoundNumbers(t *testing.T) {
	t.Parallel()
	for x, want := range map[float64][2]float64{71: {50, 100}, 100: {100, 100}, 0.3: {0.2, 0.5}, 999: {500, 1000}, 1000: {1000, 1000}} {
		assert.InDelta(t, want[0], step(x, false), 1e-9, x)
		assert.InDelta(t, want[1], step(x, true), 1e-9, x)
	}
	assert.Equal(t, "1,234,567", grouped3(1234567))
	assert.Equal(t, "0.5", grouped3(0.5))
	assert.Equal(t, "100", grouped3(100))
}
