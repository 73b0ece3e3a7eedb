package report

import (
	"bytes"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/host"
	"github.com/redlatch/redlatch/bench/internal/run"
	"github.com/redlatch/redlatch/bench/internal/stats"
)

const (
	plotWidth   = 18 * vg.Centimeter
	plotHeight  = 11 * vg.Centimeter
	legendWidth = 4 * vg.Centimeter
)

// typeface determines the layout.
var (
	typeface = font.Font{Typeface: "Liberation", Variant: "Sans"}
	fonts    = "'Liberation Sans',Arimo,Arial,Helvetica,sans-serif"
)

// Plots draws the first figure of a case, one SVG file per placement, and returns the file names.
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
		//nolint:gosec // plots are not secret
		if err := os.WriteFile(filepath.Join(folder, name), image, 0o644); err != nil {
			return names, err
		}
		names = append(names, name)
	}
	return names, nil
}

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

func chart(
	c run.Case, place host.Placement, entrants []run.Entrant, samples []run.Sample,
) (*plot.Plot, plot.Legend, error) {
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
	drawn := false
	for _, e := range entrants {
		points := series(c, place, e.Label, entrants, samples)
		if len(points) == 0 {
			continue
		}
		line, dots, err := plotter.NewLinePoints(points)
		if err != nil {
			return nil, legend, err
		}
		hue, variant := style(e.Label)
		line.Color, line.Dashes, line.Width = hue, plotutil.Dashes(variant), vg.Points(1.2)
		dots.Color, dots.Shape = hue, plotutil.Shape(variant)
		if e.Contestant.Role == contest.Own {
			line.Width *= 2
		}
		p.Add(line, dots)
		legend.Add(e.Label, line, dots)
		drawn = true
	}
	if !drawn {
		return nil, legend, nil
	}
	scale(p, c)
	return p, legend, nil
}

// libraries are in the order of their colors.
var libraries = []string{"redlatch", "redsync-redigo", "redsync-goredis", "redislock", "rueidislock", "redisson", "raw"}

func style(label string) (hue color.Color, variant int) {
	i := slices.IndexFunc(libraries, func(library string) bool { return strings.HasPrefix(label, library) })
	if i < 0 {
		return color.Black, 0
	}
	for _, c := range contest.All() {
		if c.Name == label {
			break
		}
		if strings.HasPrefix(c.Name, libraries[i]) {
			variant++
		}
	}
	return plotutil.DarkColors[i], variant
}

func scale(p *plot.Plot, c run.Case) {
	var levels plot.ConstantTicks
	for _, level := range c.Levels {
		levels = append(levels, plot.Tick{Value: float64(level), Label: strconv.Itoa(level)})
	}
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, levels
	p.X.Min, p.X.Max = float64(c.Levels[0]), float64(c.Levels[len(c.Levels)-1])
	if !c.Log {
		p.Y.Min = 0
		return
	}
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Min, p.Y.Max = math.Pow(10, math.Floor(math.Log10(p.Y.Min))), math.Pow(10, math.Ceil(math.Log10(p.Y.Max)))
}

// series omits values that are not positive if the scale is logarithmic.
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
