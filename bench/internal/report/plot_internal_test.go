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
	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/run"
	"github.com/redlatch/redlatch/bench/internal/work"
)

// drawable returns a case, all contestants, and a sample of each at each level.
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

func TestAxesFitData(t *testing.T) {
	t.Parallel()
	for _, logarithmic := range []bool{true, false} {
		c, entrants, samples := drawable(logarithmic)
		p, _, err := chart(c, host.Apart, entrants, samples)
		require.NoError(t, err)
		assert.InDelta(t, 1, p.X.Min, 0)
		assert.InDelta(t, 10_000, p.X.Max, 0)
		most := float64(70*len(entrants) + 10_000)
		assert.InDelta(t, map[bool]float64{true: 100_000, false: most}[logarithmic], p.Y.Max, 1e-6)
		assert.InDelta(t, map[bool]float64{true: 10, false: 0}[logarithmic], p.Y.Min, 1e-6, "the lowest is 71")
		var labels []string
		for _, tick := range p.X.Tick.Marker.Ticks(p.X.Min, p.X.Max) {
			labels = append(labels, tick.Label)
		}
		assert.Equal(t, []string{"1", "16", "10000"}, labels)
		for _, tick := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
			assert.NotContains(t, tick.Label, ".", "%v", tick.Value)
		}
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
