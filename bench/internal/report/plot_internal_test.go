package report

import (
	"fmt"
	"image/color"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot/plotutil"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/run"
	"github.com/redlatch/redlatch/bench/internal/work"
)

func TestAxesFitData(t *testing.T) {
	t.Parallel()
	c := run.Case{ID: "x", Levels: []int{1, 16, 10_000}, Figures: []run.Figure{{Name: work.Rate, Title: "per second", More: true}}}
	var entrants []run.Entrant
	var samples []run.Sample
	for i, of := range contest.All() {
		entrants = append(entrants, run.Entrant{Label: of.Name, Contestant: of})
		for _, level := range c.Levels {
			samples = append(samples, run.Sample{
				Case: c.ID, Round: 1, Level: level, Entrant: of.Name,
				Values: work.Values{work.Rate: float64(70*(i+1) + level)},
			})
		}
	}
	p, _, err := chart(c, entrants, samples)
	require.NoError(t, err)
	scale(p, c)
	assert.InDelta(t, 1, p.X.Min, 0)
	assert.InDelta(t, 10_000, p.X.Max, 0)
	assert.InDelta(t, 10, p.Y.Min, 1e-6, "the lowest is 71")
	assert.InDelta(t, 100_000, p.Y.Max, 1e-6)
	var labels []string
	for _, tick := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
		labels = append(labels, tick.Label)
	}
	assert.Equal(t, []string{"1", "16", "10000"}, labels)
	for _, tick := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		assert.NotContains(t, tick.Label, ".", "%v", tick.Value)
	}
}

func TestContestantStyleIsSameInAllPlots(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, of := range contest.All() {
		hue, variant := style(of.Name)
		assert.NotEqual(t, color.Black, hue, of.Name)
		look := fmt.Sprint(hue, plotutil.Dashes(variant), plotutil.Shape(variant))
		assert.Empty(t, seen[look], "%s looks like another", of.Name)
		seen[look] = of.Name
		library, _ := style(strings.TrimSuffix(of.Name, "-rw"))
		assert.Equal(t, library, hue)
	}
}
