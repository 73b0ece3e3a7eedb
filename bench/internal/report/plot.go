package report

import (
	"bytes"
	"errors"
	"image/color"
	"math"
	"os"
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

var errEmpty = errors.New("no client has a positive value")

// Plot draws the first figure of a case over its levels as an SVG file.
func Plot(file string, c run.Case, entrants []run.Entrant, samples []run.Sample) error {
	p, legend, err := chart(c, entrants, samples)
	if err != nil {
		return err
	}
	if math.IsInf(p.Y.Min, 0) {
		return errEmpty
	}
	scale(p, c)
	image, err := svg(p, legend)
	if err != nil {
		return err
	}
	return os.WriteFile(file, image, 0o644) //nolint:gosec // plots are not secret
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

func chart(c run.Case, entrants []run.Entrant, samples []run.Sample) (*plot.Plot, plot.Legend, error) {
	p, legend := plot.New(), plot.NewLegend()
	p.Title.Text = c.Title + "\n" + placed(c.Place)
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
	for _, e := range entrants {
		points := series(c, e.Label, entrants, samples)
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
	}
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
	p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Min, p.Y.Max = math.Pow(10, math.Floor(math.Log10(p.Y.Min))), math.Pow(10, math.Ceil(math.Log10(p.Y.Max)))
}

// series omits values that a logarithmic scale does not have.
func series(c run.Case, label string, entrants []run.Entrant, samples []run.Sample) plotter.XYs {
	here := of(c, samples)
	var points plotter.XYs
	for _, level := range c.Levels {
		y := stats.Median(group(entrants, here, level).values(label, c.Figures[0].Name))
		if y > 0 {
			points = append(points, plotter.XY{X: float64(level), Y: y})
		}
	}
	return points
}
