package report

import (
	"image/color"
	"strings"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"github.com/redlatch/redlatch/bench/internal/contest"
	"github.com/redlatch/redlatch/bench/internal/run"
)

// look is how the curve of a contestant is drawn, in all plots alike.
type look struct {
	colour color.Color
	shape  draw.GlyphDrawer
	width  vg.Length
	dashes []vg.Length
}

// colours are those of contestants, which can be told apart also by people who see few colours.
// The fair and read/write locks of a library have its colour.
var colours = map[string]color.Color{
	"redlatch":        color.RGBA{R: 0xd5, G: 0x2b, A: 0xff},
	"redisson":        color.RGBA{G: 0x5f, B: 0xb0, A: 0xff},
	"redsync-redigo":  color.RGBA{G: 0x9e, B: 0x73, A: 0xff},
	"redsync-goredis": color.RGBA{R: 0x56, G: 0xb4, B: 0xe9, A: 0xff},
	"redislock":       color.RGBA{R: 0xb0, G: 0x5a, B: 0x9a, A: 0xff},
	"rueidislock":     color.RGBA{R: 0xe0, G: 0x9a, A: 0xff},
	"raw-one":         color.Gray{Y: 0xa0},
	"raw-pool":        color.Gray{Y: 0x78},
	"raw-pipelined":   color.Gray{Y: 0x40},
}

// shapes are those of the points of contestants.
var shapes = map[string]draw.GlyphDrawer{
	"redlatch":        draw.CircleGlyph{},
	"redisson":        draw.BoxGlyph{},
	"redsync-redigo":  draw.TriangleGlyph{},
	"redsync-goredis": draw.PyramidGlyph{},
	"redislock":       draw.SquareGlyph{},
	"rueidislock":     draw.RingGlyph{},
	"raw-one":         draw.CrossGlyph{},
	"raw-pool":        draw.PlusGlyph{},
	"raw-pipelined":   draw.CrossGlyph{},
}

// variants are the shapes of what a library has besides its plain lock, by what its name ends in.
var variants = map[string]draw.GlyphDrawer{
	"-fair":  draw.RingGlyph{},
	"-rw":    draw.SquareGlyph{},
	"-async": draw.TriangleGlyph{},

	"-permits": draw.PyramidGlyph{},
	"-counter": draw.PlusGlyph{},
	"-cluster": draw.CrossGlyph{},
}

// lookOf returns how an entrant is drawn: by its library, and with dashes what is no lock, but a
// limit, and with dots another kind of lock than the plain one.
func lookOf(e run.Entrant) look {
	name := e.Label
	var variant draw.GlyphDrawer
	for suffix, shape := range variants {
		if of, is := strings.CutSuffix(e.Label, suffix); is {
			name, variant = of, shape
		}
	}
	l := look{colour: colours[name], shape: shapes[name], width: vg.Points(1.2)}
	if variant != nil { // beside the plain lock of the library
		l.shape, l.dashes = variant, []vg.Length{vg.Points(1.5), vg.Points(2.5)}
	}
	if l.colour == nil {
		l.colour, l.shape = color.Black, draw.RingGlyph{}
	}
	switch e.Contestant.Role {
	case contest.Own:
		l.width = vg.Points(2.4)
	case contest.Limit:
		l.dashes = []vg.Length{vg.Points(4), vg.Points(3)}
	case contest.Peer:
	}
	return l
}

func (l look) apply(line *plotter.Line, dots *plotter.Scatter) {
	line.Color, dots.Color = l.colour, l.colour
	line.Width, line.Dashes = l.width, l.dashes
	dots.Shape = l.shape
}
