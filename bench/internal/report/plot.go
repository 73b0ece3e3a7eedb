package report

import (
	"fmt"
	"math"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/run"
	"github.com/redlatch/redlatch/bench/internal/stats"
)

const (
	plotWidth  = 18 * vg.Centimeter
	plotHeight = 11 * vg.Centimeter
	// legendRoom is how far a logarithmic scale goes on, for the legend's sake.
	legendRoom = 8
)

// Plots draws the first figure of a case over its levels, one SVG for each
// placement, into folder, and returns their names. A case with one level has none.
func Plots(folder string, c run.Case, entrants []run.Entrant, samples []run.Sample) ([]string, error) {
	if len(c.Levels) < 2 {
		return nil, nil
	}
	var names []string
	for _, place := range c.Places {
		p, lines, err := draw(c, place, entrants, samples)
		if err != nil {
			return names, err
		}
		if lines == 0 {
			continue
		}
		name := fmt.Sprintf("%s-%s.svg", c.ID, place)
		if err := p.Save(plotWidth, plotHeight, filepath.Join(folder, name)); err != nil {
			return names, err
		}
		names = append(names, name)
	}
	return names, nil
}

func draw(c run.Case, place host.Placement, entrants []run.Entrant, samples []run.Sample) (*plot.Plot, int, error) {
	p := plot.New()
	p.Title.Text = fmt.Sprintf("%s (%s)", c.Title, placed(place))
	p.X.Label.Text, p.Y.Label.Text = c.Level, c.Figures[0].Title
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	if c.Log {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	}
	p.Legend.Top = true
	p.Add(plotter.NewGrid())
	lines := 0
	for i, e := range entrants {
		points := series(c, place, e.Label, entrants, samples)
		if len(points) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, 0, err
		}
		line.Color, dots.Color = plotutil.Color(i), plotutil.Color(i)
		line.Dashes, dots.Shape = plotutil.Dashes(i), plotutil.Shape(i)
		if e.Contestant.Role == contest.Own {
			line.Width *= 2
		}
		p.Add(line, dots)
		p.Legend.Add(e.Label, line, dots)
		lines++
	}
	// Room for the legend, to the right of the largest size.
	p.X.Max *= legendRoom
	return p, lines, nil
}

// series returns the medians of an entrant over the levels. What a logarithmic scale
// cannot show is left out.
func series(c run.Case, place host.Placement, label string, entrants []run.Entrant, samples []run.Sample) plotter.XYs {
	var here []run.Sample
	for _, s := range samples {
		if s.Case == c.ID && s.Place == place {
			here = append(here, s)
		}
	}
	var points plotter.XYs
	for _, level := range c.Levels {
		y := stats.Median(group(entrants, here, level).values(label, c.Figures[0].Name))
		if !math.IsNaN(y) && (y > 0 || !c.Log) {
			points = append(points, plotter.XY{X: float64(level), Y: y})
		}
	}
	return points
}
