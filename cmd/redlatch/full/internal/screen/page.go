package screen

import (
	"fmt"
	"time"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/board"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// page shows one lock.
type page struct {
	name  string
	lock  *board.Lock // nil if the server has not answered
	fail  string      // why the lock is not kept up to date
	first int         // the line on top
}

// isOdd reports that clients cannot use the name, so that only scans show the lock.
func (p *page) isOdd() bool { return limits.Name(p.name) != nil }

// shownHolders bounds the lines of a read lock.
const shownHolders = 1000

type line struct {
	text string
	look look
}

// text is made of lines of a width.
type text struct {
	lines []line
	width int
}

func (t *text) add(look look, format string, args ...any) {
	t.lines = append(t.lines, line{fmt.Sprintf(format, args...), look})
}

func (t *text) head(format string, args ...any) {
	t.add(plain, "")
	t.add(heading, format, args...)
}

func (t *text) wrap(begin, words string) {
	for _, some := range cli.Wrap(words, t.width-len(begin)) {
		t.split(plain, begin, some)
	}
}

// split adds as many lines as the words need.
func (t *text) split(look look, begin, words string) {
	room := max(2, t.width-len(begin))
	for sanitize.Width(words) > room {
		var some string
		some, words = sanitize.Cut(words, room)
		t.add(look, "%s", begin+some)
	}
	t.add(look, "%s", begin+words)
}

// owner adds an owner as people know it, and the full owner, which commands need.
func (t *text) owner(look look, begin, known, owner string) {
	full := inspect.Shown(owner)
	if sanitize.Width(begin+known)+gap+sanitize.Width(full) <= t.width {
		t.add(look, "%s", sanitize.Pad(begin+known, t.width-sanitize.Width(full))+full)
		return
	}
	t.add(look, "%s", begin+known)
	t.split(faint, sanitize.Pad("", len(begin)), full)
}

// lines returns nothing until the server has answered.
func (p *page) lines(width int) []line {
	l := p.lock
	if l == nil {
		return nil
	}
	t, why := &text{width: width}, l.Why()
	if l.At.IsZero() {
		if l.Err != nil {
			t.wrap("", sanitize.Message(sanitize.WithoutPrefix(l.Err.Error())))
		}
		return t.lines
	}
	if p.isOdd() {
		why = "Clients cannot use this name, so only the result of scans is shown."
		if l.Kind == "" {
			t.wrap("", why+" The last scan did not find it.")
			return t.lines
		}
	}
	t.wrap("", why)
	t.add(plain, "")
	t.add(plain, "kind   %s", board.KindText(l.Kind, l.Mode))
	if l.Held() && l.Number == nil {
		if !l.Since.IsZero() {
			t.add(plain, "held   %s", board.AgeText(l.Age, l.Moment()))
		}
		t.add(plain, "lease  %s", l.LeaseText(l.Moment()))
	}
	if l.Token > 0 {
		t.add(plain, "token  %d", l.Token)
	}
	t.holders(l)
	t.queue(l)
	t.events(l)
	return t.lines
}

func (t *text) holders(l *board.Lock) {
	if len(l.Holders) == 0 {
		return
	}
	title := "HOLDERS"
	if l.Number != nil {
		title = "PERMITS"
	}
	t.head("%s  %d", title, len(l.Holders))
	for i := range l.Holders[:min(len(l.Holders), shownHolders)] {
		h := &l.Holders[i]
		known := board.OwnerText(h.Owner, h.Label)
		if h.Count != "" && h.Count != "1" {
			known += ", count " + sanitize.Word(string(h.Count))
		}
		switch role := board.RoleOf(*h); {
		case l.Number != nil:
			known = role
		case role != "":
			known += ", " + role
		}
		if i < len(l.Ages) && len(l.Holders) > 1 {
			known += ", " + board.AgeText(l.Ages[i], l.Moment())
		}
		t.owner(plain, "  ", known, h.Owner)
	}
	if n := len(l.Holders) - shownHolders; n > 0 {
		t.add(faint, "  and %d more", n)
	}
}

func (t *text) queue(l *board.Lock) {
	switch {
	case l.QueueUnread != "":
		t.head("QUEUE")
		t.wrap("  ", "not shown: "+sanitize.Line(l.QueueUnread))
		return
	case l.Waiting == 0 && l.Number == nil && l.Held():
		t.head("QUEUE")
		t.wrap("  ", l.Waits())
	}
	if l.Waiting == 0 {
		return
	}
	t.head("QUEUE  %d", l.Waiting)
	if l.Uncounted != "" {
		t.wrap("  ", "subscribers cannot be counted: "+sanitize.Line(l.Uncounted))
	}
	for i := range l.Queue {
		q, look := &l.Queue[i], plain
		if q.State == board.Dead {
			look = bad
		}
		t.owner(look, fmt.Sprintf("%5d  %-7s  ", q.Position, q.State),
			board.OwnerText(q.Owner, q.Label)+", deadline "+board.DeadlineText(*q, l.Moment()), q.Owner)
	}
	if n := l.Waiting - len(l.Queue); n > 0 {
		t.add(faint, "       and %d more", n)
	}
}

func (t *text) events(l *board.Lock) {
	if len(l.Events) == 0 {
		return
	}
	t.head("HISTORY")
	for _, e := range l.Events {
		parts := board.Happening(e)
		said := parts[0]
		if len(parts) > 1 {
			said += board.OwnerText(e.Owner, e.Label) + parts[1]
		}
		t.add(plain, "  %s  %s", e.At.UTC().Format(time.TimeOnly), said)
	}
}
