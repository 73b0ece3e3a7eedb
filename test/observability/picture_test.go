package observability

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"time"
)

// The size of the picture and of its parts, in pixels.
const (
	columns    = 24 // of Grafana's grid
	pageWidth  = 1080
	rowHeight  = 30
	gridUnit   = 20 // of height
	titleSpace = 22
	axisSpace  = 46
	gap        = 8
	maxCurves  = 8 // of a panel
)

// colours are those of curves, in order.
var colours = []string{"#3274d9", "#e0752d", "#299c46", "#a352cc", "#c4162a", "#1f9e9e", "#8a6d00", "#555555"}

// picture is an SVG.
type picture struct{ strings.Builder }

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(&p.Builder, format, args...) }

func (p *picture) text(x, y float64, size int, style, text string) {
	p.printf(`<text x="%.0f" y="%.0f" font-size="%d" %s>%s</text>`+"\n", x, y, size, style, html.EscapeString(text))
}

// box is where something is drawn.
type box struct{ x, y, w, h float64 }

// draw returns the panels as Grafana arranges them, as an SVG.
func draw(panels []shown, from, until time.Time) string {
	p := &picture{}
	bottom := 0.0
	top := map[int]float64{} // of each row of the grid, in pixels
	for i := range panels {
		g := panels[i].GridPos
		if _, known := top[g.Y]; !known {
			top[g.Y] = bottom
		}
		at := box{float64(g.X) * pageWidth / columns, top[g.Y], float64(g.W) * pageWidth / columns, float64(g.H) * gridUnit}
		if panels[i].Type == "row" {
			at.h = rowHeight
			p.text(at.x+gap, at.y+rowHeight-10, 15, `font-weight="bold" fill="#222"`, panels[i].Title)
		} else {
			p.panel(at, &panels[i], from, until)
		}
		bottom = max(bottom, at.y+at.h)
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %.0f" font-family="sans-serif">`+"\n"+
		`<rect width="100%%" height="100%%" fill="#f4f5f5"/>`+"\n", pageWidth, bottom+gap) + p.String() + "</svg>\n"
}

func (p *picture) panel(at box, s *shown, from, until time.Time) {
	in := box{at.x + gap/2, at.y + gap/2, at.w - gap, at.h - gap}
	p.printf(`<rect x="%.0f" y="%.0f" width="%.0f" height="%.0f" fill="#fff" stroke="#ddd"/>`+"\n", in.x, in.y, in.w, in.h)
	p.text(in.x+gap, in.y+16, 12, `font-weight="bold" fill="#333"`, s.Title)
	unit := s.FieldConfig.Defaults.Unit
	if s.Type == "stat" {
		last := s.curves[0].points[len(s.curves[0].points)-1].value
		p.text(in.x+in.w/2, in.y+in.h/2+20, 30, `text-anchor="middle" fill="`+colours[0]+`"`, short(last, unit))
		return
	}
	curves := s.curves[:min(len(s.curves), maxCurves)]
	legendHeight := 14 * float64((len(curves)+2)/3)
	plot := box{in.x + axisSpace, in.y + titleSpace + gap, in.w - axisSpace - gap, in.h - titleSpace - 2*gap - legendHeight}
	most := 0.0
	for _, c := range curves {
		for _, at := range c.points {
			if !math.IsNaN(at.value) && !math.IsInf(at.value, 0) {
				most = max(most, at.value)
			}
		}
	}
	if most == 0 {
		most = 1
	}
	for i := range 3 {
		y := plot.y + plot.h*float64(i)/2
		p.printf(`<line x1="%.0f" y1="%.0f" x2="%.0f" y2="%.0f" stroke="#e6e6e6"/>`+"\n", plot.x, y, plot.x+plot.w, y)
		p.text(plot.x-4, y+4, 10, `text-anchor="end" fill="#777"`, short(most*float64(2-i)/2, unit))
	}
	span := until.Sub(from).Seconds()
	for i, c := range curves {
		p.curve(plot, c, colours[i], func(at point) (x, y float64) {
			return plot.x + plot.w*at.at.Sub(from).Seconds()/span, plot.y + plot.h*(1-at.value/most)
		})
		x, y := in.x+gap+float64(i%3)*(in.w-gap)/3, plot.y+plot.h+16+14*float64(i/3)
		p.printf(`<rect x="%.0f" y="%.0f" width="10" height="3" fill="%s"/>`+"\n", x, y-4, colours[i])
		p.text(x+14, y, 10, `fill="#555"`, c.name)
	}
}

// curve draws the points that are numbers, joined where none is missing between them.
func (p *picture) curve(plot box, c curve, colour string, place func(point) (x, y float64)) {
	var path picture
	pen, before := "M", time.Time{}
	for _, at := range c.points {
		if math.IsNaN(at.value) || math.IsInf(at.value, 0) {
			continue
		}
		if at.at.Sub(before) > 3*scrapeEvery {
			pen = "M"
		}
		x, y := place(at)
		path.printf("%s%.1f %.1f", pen, x, min(max(y, plot.y), plot.y+plot.h))
		pen, before = "L", at.at
	}
	p.printf(`<path d="%s" fill="none" stroke="%s" stroke-width="1.5" stroke-linecap="round"/>`+"\n", path.String(), colour)
}

// short returns a number with its unit, as it is written on axes.
func short(v float64, unit string) string {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }
	switch {
	case unit == "s" && v != 0 && v < 1:
		return number(v*1000) + " ms"
	case unit == "s":
		return number(v) + " s"
	case unit == "ops":
		return number(v) + "/s"
	}
	return number(v)
}
