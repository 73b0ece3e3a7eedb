package observability

import (
	"encoding/json"
	"fmt"
	"html"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// atMost is the time limit for the run, which ends when all panels show data and the alert for losses has fired.
const atMost = 2 * time.Minute

// programs is the number of programs.
const programs = 3

// pictureEnv names the file for an image of the panels.
const pictureEnv = "REDLATCH_PICTURE"

// shown is a panel with its data.
type shown struct {
	panel
	curves []curve
}

// curve is a series with its name in the legend.
type curve struct {
	name string
	series
}

func TestDashboardPanelsShowData(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	addKeysOfTheDead(t, s)
	e := program.StartWith(t, []string{build(t), "REDIS_URL=" + s.URL()}, "exporter", "--listen", "127.0.0.1:0", "--every", "1s",
		"--match", "orders=orders:*", "--match", "billing=billing*")
	url, found := strings.CutSuffix(strings.TrimPrefix(e.Line(), "http://"), "/metrics")
	require.True(t, found)
	targets := map[string][]string{"redlatch-exporter": {url}, "shop": startFleet(t, s, programs)}
	p := startPrometheus(t, targets)
	all, d := known(t), readDashboard(t)
	var panels []shown
	var until time.Time
	late := p.from.Add(atMost)
	for missing := "not started"; missing != ""; {
		require.True(t, time.Now().Before(late), missing)
		<-time.After(scrapeEvery)
		until = time.Now()
		panels, missing = p.look(d, all, until)
	}
	if file := os.Getenv(pictureEnv); file != "" {
		require.NoError(t, os.WriteFile(file, []byte(draw(panels, p.from, until)), 0o600))
	}
}

// look returns the data of the panels, and a description of the data that is missing, or "".
func (p *prometheus) look(d *dashboard, all map[string]metric, until time.Time) (panels []shown, missing string) {
	p.t.Helper()
	for name := range all {
		if strings.HasPrefix(name, "redlatch_") && len(p.overTime(name, until)) == 0 {
			return nil, name + " is in a golden list but was not scraped"
		}
	}
	for i := range d.Panels {
		s, missing := p.show(&d.Panels[i], until)
		if missing != "" {
			return nil, missing
		}
		panels = append(panels, s)
	}
	states := p.states()
	require.Len(p.t, states, len(alerts(p.t)))
	require.Equal(p.t, "inactive", states["RedlatchHoldOld"])
	if states["RedlatchLocksLost"] != "firing" {
		return nil, "locks were lost, but no alert fires"
	}
	return panels, ""
}

// show runs a panel's expressions. Each must return series, and one of them a nonzero number.
func (p *prometheus) show(of *panel, until time.Time) (s shown, missing string) {
	p.t.Helper()
	s.panel = *of
	something := len(of.Targets) == 0
	for _, target := range of.Targets {
		expr := filled(target.Expr, rateOver, "20s")
		number := false
		for _, one := range p.overTime(expr, until) {
			for _, at := range one.points {
				finite := !math.IsNaN(at.value) && !math.IsInf(at.value, 0)
				number = number || finite
				something = something || finite && at.value != 0
			}
			s.curves = append(s.curves, curve{legend(target.Legend, one.labels), one})
		}
		if !number {
			return s, of.Title + " shows no series of " + expr
		}
	}
	if !something {
		return s, of.Title + " shows only zeros"
	}
	return s, ""
}

// legend replaces the {{labels}} in a legend.
func legend(format string, labels map[string]string) string {
	for strings.Contains(format, "{{") {
		before, rest, _ := strings.Cut(format, "{{")
		name, after, _ := strings.Cut(rest, "}}")
		format = before + labels[name] + after
	}
	return strings.TrimSpace(format)
}

// addKeysOfTheDead adds keys that dead programs left behind: dead waiters, a free lock with a queue, a lock without a
// TTL, and a waiter for another kind of lock.
func addKeysOfTheDead(t *testing.T, s *redistest.Server) {
	t.Helper()
	s.Do(t, "HSET", "billing-run", program.RedissonOwner, 1)
	s.Do(t, "PEXPIRE", "billing-run", time.Hour.Milliseconds())
	for i := range 5 {
		program.Enqueue(t, s, "billing-run", program.LongOwner(i), time.Hour)
	}
	program.Listen(t, s, "billing-run", program.LongOwner(0))
	program.Enqueue(t, s, "billing-free", program.RedissonOwner, time.Hour)
	s.Do(t, "HSET", "orders:for-ever", program.RedissonOwner, 1)
	s.Do(t, "HSET", "orders:books", "mode", "write", program.RedissonOwner+":write", 1)
	c := s.Dial(t)
	require.NoError(t, c.Send("SUBSCRIBE", codec.LockChannel("orders:books"), codec.LockChannel("orders:for-ever")))
	require.NoError(t, c.Flush())
	_, err := c.Receive()
	require.NoError(t, err)
}

// root is the root of the checkout.
const root = "../.."

// dashboard contains the fields of the dashboard's JSON that are tested.
type dashboard struct {
	Panels     []panel `json:"panels"`
	Templating struct {
		List []variable `json:"list"`
	} `json:"templating"`
}

type variable struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Definition string `json:"definition"`
}

type panel struct {
	ID          int    `json:"id"`
	Type        string `json:"type"`
	Title       string `json:"title"`
	Description string `json:"description"`
	Datasource  struct {
		UID string `json:"uid"`
	} `json:"datasource"`
	FieldConfig struct {
		Defaults struct {
			Unit string `json:"unit"`
		} `json:"defaults"`
	} `json:"fieldConfig"`
	GridPos struct{ H, W, X, Y int } `json:"gridPos"`
	Targets []target                 `json:"targets"`
}

type target struct {
	Expr   string `json:"expr"`
	Legend string `json:"legendFormat"`
}

func readDashboard(t *testing.T) *dashboard {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "deploy", "grafana", "redlatch.json"))
	require.NoError(t, err)
	d := &dashboard{}
	require.NoError(t, json.Unmarshal(text, d))
	require.Greater(t, len(d.Panels), 20, "too few panels: the dashboard was not read")
	return d
}

// filled replaces Grafana's variables in an expression.
func filled(expr, rateInterval, span string) string {
	return strings.NewReplacer("$__rate_interval", rateInterval, "$__range", span, "$job", ".*", "$exporter", ".*").Replace(expr)
}

// When it imports the dashboard, Grafana must only prompt for the Prometheus data source.
func TestDashboardNamesNoDatasource(t *testing.T) {
	t.Parallel()
	d := readDashboard(t)
	require.Equal(t, variable{Name: "datasource", Type: "datasource"}, d.Templating.List[0])
	ids, titles := map[int]bool{}, map[string]bool{}
	for i := range d.Panels {
		p := &d.Panels[i]
		require.False(t, ids[p.ID] || titles[p.Title], "%d %s is a duplicate", p.ID, p.Title)
		ids[p.ID], titles[p.Title] = true, true
		if p.Type == "row" {
			continue
		}
		require.Equal(t, "${datasource}", p.Datasource.UID, p.Title)
		require.NotEmpty(t, p.Description, p.Title)
		require.NotEmpty(t, p.Targets, p.Title)
	}
}

// Sizes in the image, in pixels.
const (
	columns    = 24 // number of columns in Grafana's grid
	pageWidth  = 1080
	rowHeight  = 30
	gridUnit   = 20 // height
	titleSpace = 22
	axisSpace  = 46
	gap        = 8
	maxCurves  = 8 // per panel
)

// colours of curves, in order.
var colours = []string{"#3274d9", "#e0752d", "#299c46", "#a352cc", "#c4162a", "#1f9e9e", "#8a6d00", "#555555"}

type picture struct{ strings.Builder }

func (p *picture) printf(format string, args ...any) { fmt.Fprintf(&p.Builder, format, args...) }

func (p *picture) text(x, y float64, size int, style, text string) {
	p.printf(`<text x="%.0f" y="%.0f" font-size="%d" %s>%s</text>`+"\n", x, y, size, style, html.EscapeString(text))
}

type box struct{ x, y, w, h float64 }

// draw returns an SVG of the panels, arranged as in Grafana.
func draw(panels []shown, from, until time.Time) string {
	p := &picture{}
	bottom := 0.0
	top := map[int]float64{} // row of the grid -> position of its top in pixels
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

// curve draws the points that are numbers, with gaps where points are missing.
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

// short formats a number with its unit for an axis.
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
