package redlatchui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redlatch/redlatch/internal/tool/board"
)

// sparkHeight is in the units of the view box, in which each point has a width of 1.
const sparkHeight = 20

// spark is a chart of a board.Series, with a text alternative.
type spark struct {
	// Name is the title of the chart, and Style its color.
	Name, Style string
	// Now is the current number, or the sum for a chart of changes. Note is its range or time. Title is the text
	// alternative.
	Now, Note, Title string
	// Area and Line are paths.
	Area, Line string
	Quiet      bool
}

// figures contains the charts of a page, a group or a row.
type figures struct {
	Of                               string
	Held, Waiters, Acquired, Expired *spark
	// Since is the beginning of the record if it is less than five minutes ago.
	Since string
	// During is the time of the record in words.
	During string
}

// All returns the charts in order, without those that have no data.
func (f *figures) All() (all []*spark) {
	for _, s := range []*spark{f.Held, f.Waiters, f.Acquired, f.Expired} {
		if s != nil {
			all = append(all, s)
		}
	}
	return all
}

func figuresOf(of string, s *board.Series, held, waiters int) *figures {
	if s == nil {
		return nil
	}
	f, when := rowFiguresOf(of, s, waiters)
	f.Held = f.gauge("Locks held", "held", s, held, func(p *board.Point) int32 { return p.Held })
	f.Expired = counter("Leases expired", "expired", when, s, func(p *board.Point) int32 { return p.Expired })
	return f
}

// rowFiguresOf returns only the charts in the row of a lock.
func rowFiguresOf(of string, s *board.Series, waiters int) (f *figures, when string) {
	f, when = &figures{Of: of, During: "in the last 5 minutes"}, "in 5 min"
	if since := s.Since(); !since.IsZero() && s.End.Sub(since) < board.Past {
		f.Since = since.UTC().Format(time.TimeOnly) + " UTC"
		f.During, when = "since "+f.Since, "in "+board.Span(s.End.Sub(since))
	}
	f.Waiters = f.gauge("Waiters", "waiters", s, waiters, func(p *board.Point) int32 { return p.Waiters })
	f.Acquired = counter("Acquisitions", "acquired", when, s, func(p *board.Point) int32 { return p.Acquired })
	return f, when
}

// gauge draws a number over time.
func (f *figures) gauge(name, style string, s *board.Series, now int, value func(*board.Point) int32) *spark {
	low, high := int32(now), int32(now)
	for i := range s.Points {
		if p := &s.Points[i]; p.Known {
			low, high = min(low, value(p)), max(high, value(p))
		}
	}
	c := &spark{Name: name, Style: style, Now: grouped(int64(now)), Note: "none", Quiet: high == 0}
	if high > 0 {
		c.Note = "up to " + grouped(int64(high))
		if low == high {
			c.Note = "always " + grouped(int64(high))
		} else if low > 0 {
			c.Note = grouped(int64(low)) + " to " + grouped(int64(high))
		}
	}
	c.Title = fmt.Sprintf("%s %s: %s, now %s", name, f.During, c.Note, c.Now)
	var area, line strings.Builder
	for from := 0; from < len(s.Points); from++ {
		if !s.Points[from].Known {
			continue
		}
		y := heightOf(value(&s.Points[from]), high)
		fmt.Fprintf(&area, "M%d %dV%s", from, sparkHeight, y)
		fmt.Fprintf(&line, "M%d %s", from, y)
		to := from
		for ; to < len(s.Points) && s.Points[to].Known; to++ {
			next := heightOf(value(&s.Points[to]), high)
			if next != y {
				fmt.Fprintf(&area, "H%dV%s", to, next)
				fmt.Fprintf(&line, "H%dV%s", to, next)
				y = next
			}
		}
		fmt.Fprintf(&area, "H%dV%dZ", to, sparkHeight)
		fmt.Fprintf(&line, "H%d", to)
		from = to
	}
	c.Area, c.Line = area.String(), line.String()
	return c
}

// heightOf returns the vertical coordinate of a value.
func heightOf(value, highest int32) string {
	const top = 1.5 // room for the line
	at := sparkHeight - (sparkHeight-top)*float64(value)/float64(max(highest, 1))
	return strconv.FormatFloat(min(at, sparkHeight-.5), 'f', 1, 64)
}

// counter draws a bar for each point with changes.
func counter(name, style, when string, s *board.Series, value func(*board.Point) int32) *spark {
	sum, high := int64(0), int32(0)
	for i := range s.Points {
		sum, high = sum+int64(value(&s.Points[i])), max(high, value(&s.Points[i]))
	}
	c := &spark{Name: name, Style: style, Now: grouped(sum), Note: when, Title: name + ": " + grouped(sum) + " " + when, Quiet: high == 0}
	var bars, base strings.Builder
	for i := range s.Points {
		p := &s.Points[i]
		if v := value(p); v > 0 {
			fmt.Fprintf(&bars, "M%d.1 %dV%sh.8V%dZ", i, sparkHeight, heightOf(v, high), sparkHeight)
		}
		if p.Known {
			fmt.Fprintf(&base, "M%d 19.5h1", i)
		}
	}
	c.Area, c.Line = bars.String(), base.String()
	return c
}

// grouped writes a number with commas.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
