package screen

import (
	"fmt"
	"strings"
	"time"

	"github.com/gdamore/tcell/v3"
	"github.com/gdamore/tcell/v3/color"

	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// look is a text style. Styles use the colors of the terminal's own palette that are readable on light and dark
// backgrounds, and no meaning depends on color alone, because of NO_COLOR.
type look int

const (
	plain look = iota
	heading
	faint
	chosen
	warning
	bad
	alarm
)

func (l look) style() tcell.Style {
	switch l {
	case heading:
		return tcell.StyleDefault.Bold(true)
	case faint:
		return tcell.StyleDefault.Dim(true)
	case chosen:
		return tcell.StyleDefault.Reverse(true)
	case warning:
		return tcell.StyleDefault.Foreground(color.Purple) // yellow is hard to read on white
	case bad:
		return tcell.StyleDefault.Foreground(color.Maroon)
	case alarm:
		return tcell.StyleDefault.Foreground(color.Maroon).Bold(true).Reverse(true)
	}
	return tcell.StyleDefault
}

// put writes text, padded or cut to a number of columns. Callers sanitize names; put makes sure that no
// control character reaches the terminal.
func (v *view) put(x, y, columns int, text string, look look) {
	if columns > 0 {
		text = strings.ReplaceAll(sanitize.Text(text), "\n", " ")
		v.screen.PutStrStyled(x, y, sanitize.Pad(sanitize.Truncate(text, columns), columns), look.style())
	}
}

// draw draws the rows that fit on the screen.
func (v *view) draw() {
	v.screen.Clear()
	v.screen.HideCursor()
	width, height := v.screen.Size()
	switch {
	case v.help:
		for y, text := range strings.Split(help, "\n") {
			v.put(0, y, width, text, plain)
		}
	case v.lock != nil:
		v.drawPage(width, height)
	default:
		v.drawTable(width, height)
	}
	v.screen.Show()
}

const (
	headRows = 2 // above the table's titles, or the page
	footRows = 1
)

func (v *view) drawHead(width int, about string, seen *board.Seen, says string) {
	v.put(0, 0, width, spread("redlatch top  "+v.Place, about, width), heading)
	look := plain
	switch {
	case says != "" && seen == nil: // it was not opened
		look = alarm
	case seen == nil || seen.At.IsZero() && seen.Err == nil:
		says = "waiting for the first reply ..."
	case seen.At.IsZero():
		says, look = sanitize.Message(sanitize.WithoutPrefix(seen.Err.Error())), alarm
	case v.resumed && seen.Err == nil && seen.Old(time.Now()):
		says = "read " + board.Span(time.Since(seen.At)) + " ago, reading again ..."
	case seen.Old(time.Now()):
		says, look = "STALE, read "+board.Span(time.Since(seen.At))+" ago: ", alarm
		if seen.Err != nil {
			says += sanitize.Message(sanitize.WithoutPrefix(seen.Err.Error()))
		} else {
			says += "the server does not answer"
		}
	case v.Note != "":
		says, look = "warning: "+v.Note, warning
	}
	v.put(0, 1, width, says, look)
}

// spread puts the two strings at the left and right edges. If they do not fit, it returns only right.
func spread(left, right string, width int) string {
	if sanitize.Width(left)+gap+sanitize.Width(right) > width {
		return right
	}
	return sanitize.Pad(left, width-sanitize.Width(right)) + right
}

func (v *view) drawTable(width, height int) {
	t := &v.table
	var seen *board.Seen
	about, state := "", ""
	if t.all != nil {
		seen, about, state = &t.all.Seen, t.about(), t.state(v.Pattern)
	}
	v.drawHead(width, about, seen, state)
	all, x := columns(width), gap
	for _, c := range all {
		look := heading
		if c.order == t.order {
			look = chosen
		}
		v.put(x, headRows, c.width, align(c.title, c), look)
		x += c.width + gap
	}
	visible := v.visible()
	t.first = max(min(t.first, t.cursor, len(t.rows)-visible), t.cursor-visible+1, 0)
	for i, e := range t.rows[t.first:min(len(t.rows), t.first+visible)] {
		v.drawRow(headRows+1+i, width, all, e, t.first+i == t.cursor)
	}
	if t.typing {
		typed := tail("filter: "+sanitize.Text(t.filter), width-1)
		v.put(0, height-1, width, typed, heading)
		v.screen.ShowCursor(sanitize.Width(typed), height-1)
		return
	}
	v.put(0, height-1, width, "enter lock   f filter   s sort   ? help   q quit", faint)
}

// tail returns the end of a text that fits into columns.
func tail(text string, columns int) string {
	end := text
	for cut := sanitize.Width(text) - columns; sanitize.Width(end) > columns; cut++ {
		_, end = sanitize.Cut(text, cut)
	}
	return end
}

func (v *view) drawRow(y, width int, all []column, e *board.Entry, isChosen bool) {
	look, mark := plain, " "
	switch board.LevelOf(e.Trouble) {
	case board.Bad:
		look, mark = bad, "!"
	case board.Warn:
		look, mark = warning, "!"
	}
	if isChosen {
		look = chosen
	}
	moment := v.table.all.Moment()
	v.put(0, y, width, mark, look)
	x := gap
	for _, c := range all {
		v.put(x, y, c.width, align(c.text(e, moment), c), look)
		x += c.width + gap
	}
}

func align(text string, c column) string {
	if !c.right {
		return text
	}
	return sanitize.Pad("", c.width-sanitize.Width(text)) + text
}

// lines is the number of rows between head and foot.
func (v *view) lines() int {
	_, height := v.screen.Size()
	return max(1, height-headRows-footRows)
}

// visible is the number of rows of the table.
func (v *view) visible() int { return max(1, v.lines()-1) }

// about sums up the locks.
func (t *table) about() string {
	atLeast := ""
	if t.all.Total > len(t.all.Entries) {
		atLeast = "at least "
	}
	return fmt.Sprintf("%s, %s%d in trouble, %d waiting", count(t.all.Total, "lock"), atLeast, t.all.Troubled, t.all.Waiting)
}

func (t *table) state(pattern string) string {
	says := "sorted by " + t.order.String()
	if pattern != "" {
		says += ", names like " + sanitize.Word(pattern)
	}
	if t.filter != "" {
		says += fmt.Sprintf(", filter %s: %d", sanitize.Word(t.filter), len(t.rows))
	}
	switch all := t.all; {
	case all.Unread.Keys > 0:
		says += "; " + sanitize.Message(all.Unread.Text("keys"))
	case all.Unread.Away != nil:
		says += "; not all masters were scanned: " + sanitize.Message(all.Unread.Away.Error())
	case all.Total > len(all.Entries) && t.changed.After(all.At.Add(-all.Took)):
		says += fmt.Sprintf("; %d of %d locks until the next scan", len(all.Entries), all.Total)
	case all.Total > len(all.Entries):
		says += fmt.Sprintf("; the first %d of %d locks", len(all.Entries), all.Total)
	}
	return says
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (v *view) drawPage(width, height int) {
	p := v.lock
	var seen *board.Seen
	if p.lock != nil {
		seen = &p.lock.Seen
	}
	v.drawHead(width, board.NameText(p.name), seen, p.fail)
	lines, visible := p.lines(width), v.lines()
	p.first = max(0, min(p.first, len(lines)-visible))
	for i, l := range lines[p.first:min(len(lines), p.first+visible)] {
		v.put(0, headRows+i, width, l.text, l.look)
	}
	v.put(0, height-1, width, "esc back   up, down scroll   ? help   q quit", faint)
}
