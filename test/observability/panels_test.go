package observability

import (
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// runFor is how long the run lasts: renewals, losses and evictions must have happened, and been
// scraped. When there is a series that is still missing then, it goes on until there is none,
// for runMost, and runMore longer: rates need time.
const runFor, runMost, runMore = 12 * time.Second, 60 * time.Second, 4 * time.Second

// programs is how many programs there are.
const programs = 3

// pictureEnv names the file for a picture of the panels.
const pictureEnv = "REDLATCH_PICTURE"

// shown is a panel with what it shows.
type shown struct {
	panel
	curves []curve
}

// curve is a series with the name that its legend gives it.
type curve struct {
	name string
	series
}

func TestNoPanelIsEmptyAfterARealRun(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	addKeysOfTheDead(t, s)
	e := program.Start(t, s.URL(), "exporter", "--listen", "127.0.0.1:0", "--every", "1s",
		"--match", "orders=orders:*", "--match", "billing=billing*")
	url, found := strings.CutSuffix(strings.TrimPrefix(e.Line(), "http://"), "/metrics")
	require.True(t, found)
	targets := map[string][]string{"redlatch-exporter": {url}, "shop": startFleet(t, s, programs)}
	p := startPrometheus(t, targets)
	time.Sleep(runFor) // what is measured is time
	all := known(t)
	for late := p.from.Add(runMost); len(p.missing(all)) > 0 && time.Now().Before(late); {
		time.Sleep(runMore)
	}
	until := time.Now()
	require.Empty(t, p.missing(all), "in a golden list, and not scraped")
	var panels []shown
	d := readDashboard(t)
	for i := range d.Panels {
		panels = append(panels, p.show(&d.Panels[i], until))
	}
	states := p.states()
	require.Len(t, states, len(alerts(t)))
	require.Equal(t, "firing", states["RedlatchLocksLost"], "locks were lost")
	require.Equal(t, "inactive", states["RedlatchHoldOld"])
	if file := os.Getenv(pictureEnv); file != "" {
		require.NoError(t, os.WriteFile(file, []byte(draw(panels, p.from, until)), 0o600))
	}
}

// missing returns the names of the program's metrics that were not scraped yet.
func (p *prometheus) missing(all map[string]metric) (names []string) {
	p.t.Helper()
	for name := range all {
		if strings.HasPrefix(name, "redlatch_") && len(p.overTime(name, time.Now())) == 0 {
			names = append(names, name)
		}
	}
	return names
}

// show runs a panel's expressions. Each must have found series, and one of them a number that
// is not 0.
func (p *prometheus) show(of *panel, until time.Time) shown {
	p.t.Helper()
	s := shown{panel: *of}
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
		require.True(p.t, number, "%s shows nothing of %s", of.Title, expr)
	}
	require.True(p.t, something, "%s shows nothing but zeros", of.Title)
	return s
}

// legend fills a legend's {{labels}} in.
func legend(format string, labels map[string]string) string {
	for strings.Contains(format, "{{") {
		before, rest, _ := strings.Cut(format, "{{")
		name, after, _ := strings.Cut(rest, "}}")
		format = before + labels[name] + after
	}
	return strings.TrimSpace(format)
}

// addKeysOfTheDead makes locks that no living program has: dead waiters, a lock that is free
// with a queue, one without a lease, one that is waited for as for another kind.
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
