package report

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/run"
	"github.com/redlatch/redlatch/bench/internal/stats"
)

const (
	plotWidth  = 18 * vg.Centimeter
	plotHeight = 11 * vg.Centimeter
	// legendWidth is the part of it, on the right, that has the legend and no curve.
	legendWidth = 4 * vg.Centimeter
)

// typeface is the one whose widths are reckoned with, and fonts those that a viewer may take:
// the others are as wide.
var (
	typeface = font.Font{Typeface: "Liberation", Variant: "Sans"}
	fonts    = "'Liberation Sans',Arimo,Arial,Helvetica,sans-serif"
)

// Plots draws the first figure of a case over its levels, one SVG for each
// placement, into folder, and returns their names. A case with one level has none.
func Plots(folder string, c run.Case, entrants []run.Entrant, samples []run.Sample) ([]string, error) {
	if len(c.Levels) < 2 {
		return nil, nil
	}
	var names []string
	for _, place := range c.Places {
		p, legend, err := chart(c, place, entrants, samples)
		if err != nil {
			return names, err
		}
		if p == nil {
			continue
		}
		image, err := svg(p, legend)
		if err != nil {
			return names, err
		}
		name := fmt.Sprintf("%s-%s.svg", c.ID, place)
		//nolint:gosec // what was measured is no secret
		if err := os.WriteFile(filepath.Join(folder, name), image, 0o644); err != nil {
			return names, err
		}
		names = append(names, name)
	}
	return names, nil
}

// svg draws a plot with its legend beside it.
func svg(p *plot.Plot, legend plot.Legend) ([]byte, error) {
	canvas := vgsvg.New(plotWidth, plotHeight)
	all := draw.New(canvas)
	p.Draw(draw.Crop(all, 0, -legendWidth, 0, 0))
	beside := draw.Crop(all, plotWidth-legendWidth+vg.Points(8), 0, 0, -vg.Points(40))
	legend.Draw(beside)
	var b bytes.Buffer
	if _, err := canvas.WriteTo(&b); err != nil {
		return nil, err
	}
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:"+fonts+";")), nil
}

// chart makes the plot of a case and its legend. It is nil when there is nothing to draw.
func chart(c run.Case, place host.Placement, entrants []run.Entrant, samples []run.Sample) (*plot.Plot, plot.Legend, error) {
	p, legend := plot.New(), plot.NewLegend()
	p.Title.Text = c.Title + "\n" + placed(place)
	p.X.Label.Text, p.Y.Label.Text = c.Level, c.Figures[0].Title
	legend.TextStyle.Font.Size = vg.Points(10)
	legend.Top, legend.Left, legend.Padding = true, true, vg.Points(3)
	for _, of := range []*font.Font{
		&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &legend.TextStyle.Font,
	} {
		of.Typeface, of.Variant = typeface.Typeface, typeface.Variant
	}
	p.Add(plotter.NewGrid())
	var drawn []plotter.XYs
	for _, e := range entrants {
		points := series(c, place, e.Label, entrants, samples)
		if len(points) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, legend, err
		}
		lookOf(e).apply(line, dots)
		p.Add(line, dots)
		legend.Add(e.Label, line, dots)
		drawn = append(drawn, points)
	}
	if len(drawn) == 0 {
		return nil, legend, nil
	}
	scale(p, c, drawn)
	return p, legend, nil
}

// scale makes the axes end where the data end.
func scale(p *plot.Plot, c run.Case, drawn []plotter.XYs) {
	least, most := math.Inf(1), 0.0
	for _, points := range drawn {
		for _, at := range points {
			least, most = min(least, at.Y), max(most, at.Y)
		}
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, levels(c.Levels)
	p.X.Min, p.X.Max = float64(c.Levels[0]), float64(c.Levels[len(c.Levels)-1])
	if c.Log {
		p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, steps{}
		p.Y.Min, p.Y.Max = step(least, false), step(most, true)
		return
	}
	p.Y.Tick.Marker = even{}
	p.Y.Min, p.Y.Max = 0, math.Ceil(most/apart(most))*apart(most)
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
