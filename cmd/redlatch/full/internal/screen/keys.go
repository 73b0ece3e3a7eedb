package screen

import (
	"fmt"
	"os"
	"time"

	"github.com/gdamore/tcell/v3"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/top"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const help = "redlatch top\n\n" + top.Legend + "\n\n  Any key closes this page."

// longestFilter is in bytes.
const longestFilter = 1024

func (v *view) handle(ev tcell.Event) {
	switch ev := ev.(type) {
	case *tcell.EventResize:
		v.screen.Sync()
	case *tcell.EventKey:
		v.press(ev.Key(), ev.Str())
	case *tcell.EventError:
		v.err = fmt.Errorf("the terminal was lost: %w", ev)
	}
}

func (v *view) press(key tcell.Key, text string) {
	switch {
	case key == tcell.KeyCtrlC:
		v.err = &cli.ExitError{Code: cli.SignalCode(os.Interrupt)}
	case key == tcell.KeyCtrlZ:
		v.stop()
	case key == tcell.KeyCtrlL:
		v.screen.Sync()
	case v.help:
		v.help = false
	case v.table.typing:
		v.typeFilter(key, text)
	case text == "q":
		v.quit = true
	case text == "?":
		v.help = true
	case v.lock != nil:
		v.pressOnPage(key, text)
	default:
		v.pressOnTable(key, text)
	}
}

func (v *view) typeFilter(key tcell.Key, text string) {
	t := &v.table
	switch key {
	case tcell.KeyEnter:
		t.typing = false
	case tcell.KeyEsc:
		t.typing = false
		v.filterBy("")
	case tcell.KeyBackspace: // the last character with its accents
		shorter, _ := sanitize.Cut(t.filter, sanitize.Width(t.filter)-1)
		v.filterBy(shorter)
	case tcell.KeyCtrlU:
		v.filterBy("")
	case tcell.KeyRune:
		if len(t.filter)+len(text) <= longestFilter {
			v.filterBy(t.filter + text)
		}
	}
}

func (v *view) filterBy(filter string) {
	if filter == v.table.filter {
		return
	}
	v.table.filter = filter
	v.rearrange()
}

func (v *view) sortBy(o order) {
	v.table.order, v.table.cursor, v.table.name = o, 0, ""
	v.rearrange()
}

func (v *view) rearrange() {
	v.table.changed = time.Now()
	v.table.choose()
	v.Board.Prefer(v.table.preferred())
}

// distance returns how far a key moves, in rows.
func distance(key tcell.Key, text string, visible int) int {
	const end = 1 << 30
	switch {
	case key == tcell.KeyUp || text == "k":
		return -1
	case key == tcell.KeyDown || text == "j":
		return 1
	case key == tcell.KeyPgUp:
		return -visible
	case key == tcell.KeyPgDn || text == " ":
		return visible
	case key == tcell.KeyHome || text == "g":
		return -end
	case key == tcell.KeyEnd || text == "G":
		return end
	}
	return 0
}

func (v *view) pressOnPage(key tcell.Key, text string) {
	if key == tcell.KeyEsc || key == tcell.KeyBackspace || key == tcell.KeyLeft {
		v.lock, v.resumed = nil, true
		return
	}
	v.lock.first = max(0, v.lock.first+distance(key, text, v.lines()))
}

func (v *view) pressOnTable(key tcell.Key, text string) {
	t := &v.table
	switch {
	case key == tcell.KeyEsc:
		v.filterBy("")
	case key == tcell.KeyEnter && t.cursor < len(t.rows):
		v.lock = &page{name: t.rows[t.cursor].Name}
	case text == "f" || text == "/":
		t.typing = true
	case text == "s":
		v.sortBy((t.order + 1) % order(orders))
	case len(text) == 1 && text[0] >= '1' && int(text[0]-'1') < orders:
		v.sortBy(order(text[0] - '1'))
	default:
		if by := distance(key, text, v.visible()); by != 0 {
			t.move(by)
		}
	}
}
