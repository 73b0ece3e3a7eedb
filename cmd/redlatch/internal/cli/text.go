package cli

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

const (
	// Columns is the assumed width of a terminal whose width is unknown.
	Columns = 80
	hang    = 9 // the column where text begins
)

// WithDetails returns an owner and its details, on the next line if they do not fit on one.
func WithDetails(owner, what string) string {
	if sanitize.Width(owner)+3+sanitize.Width(what) < Columns {
		return owner + "   " + what + "\n"
	}
	return owner + "\n" + Indented("", what)
}

// Indented returns word and text in lines that fit a terminal, with control characters replaced.
func Indented(word, text string) string {
	return fmt.Sprintf("  %-*s", hang-2, word) + strings.Join(Wrap(text, Columns-1-hang), "\n"+strings.Repeat(" ", hang)) + "\n"
}

// Wrap returns text in lines of at most width columns, at least one, with control characters replaced.
// A command in backquotes stays on one line, so that it can be pasted.
func Wrap(text string, width int) []string {
	lines := []string{""}
	for _, word := range words(sanitize.Text(text)) {
		last := &lines[len(lines)-1]
		switch {
		case *last == "":
			*last = word
		case sanitize.Width(*last)+1+sanitize.Width(word) <= width:
			*last += " " + word
		default:
			lines = append(lines, word)
		}
	}
	return lines
}

func words(text string) []string {
	if strings.Count(text, "`")%2 != 0 {
		return strings.Fields(text)
	}
	within := false
	return strings.FieldsFunc(text, func(r rune) bool {
		if r == '`' {
			within = !within
		}
		return !within && unicode.IsSpace(r)
	})
}

// Deadline shows a deadline relative to now.
func Deadline(ms *int64) string {
	switch {
	case ms == nil:
		return "none"
	case *ms > 0:
		return "in " + Millis(*ms)
	}
	return Millis(-*ms) + " ago"
}

// Millis shows a number of milliseconds as a duration.
func Millis(ms int64) string {
	return limits.Show(limits.FromMillis(ms), 100*time.Millisecond)
}

// Lease shows the rest of a lease in at most seven columns.
func Lease(left time.Duration) string {
	switch {
	case left == redlatch.NoTTL:
		return "none"
	case left < time.Minute:
		return left.Round(100 * time.Millisecond).String()
	case left < time.Hour:
		return left.Round(time.Second).String()
	case left < 100*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(left.Hours()), int(left.Minutes())%60)
	}
	return fmt.Sprintf("%dd", int(left.Hours()/24))
}

// Messagef writes a message, with control characters replaced. It is one line, wrapped between
// words on a terminal.
func Messagef(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, Fit(w, "redlatch: "+sanitize.Text(fmt.Sprintf(format, args...))))
}

// Fit wraps text if w is a terminal.
func Fit(w io.Writer, text string) string {
	f := fileOf(w)
	if f == nil || !term.IsTerminal(int(f.Fd())) {
		return text
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 {
		width = Columns
	}
	return fold(text, width-1) // some terminals wrap a full line
}

// fold replaces blanks by line breaks where a line would exceed width. It keeps other runs of
// blanks, which may be part of a name.
func fold(text string, width int) string {
	const indent = "  "
	var b strings.Builder
	for line := range strings.Lines(text) {
		used := 0
		for i, word := range strings.Split(line, " ") {
			size := sanitize.Width(strings.TrimSuffix(word, "\n"))
			switch {
			case i == 0:
			case used+1+size > width && used > len(indent):
				b.WriteString("\n" + indent)
				used = len(indent)
			default:
				b.WriteByte(' ')
				used++
			}
			b.WriteString(word)
			used += size
		}
	}
	return b.String()
}

const (
	clearLine  = "\x1b[K"
	clearBelow = "\x1b[J"
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	reset      = "\x1b[0m"
)

// Colour is an escape sequence, "" for plain text.
type Colour string

// The colours in use.
const (
	Green  Colour = "\x1b[32m"
	Yellow Colour = "\x1b[33m"
	Red    Colour = "\x1b[1;31m"
	Bold   Colour = "\x1b[1m"
	Dim    Colour = "\x1b[2m"
)

// Look says whether Paint may colour.
type Look bool

// LookOf returns a Look with colours if w is a terminal and NO_COLOR is not set.
func LookOf(w io.Writer) Look { return Look(IsLive(w) && os.Getenv("NO_COLOR") == "") }

// Paint returns text in a colour.
func (l Look) Paint(c Colour, text string) string {
	if !bool(l) || c == "" || text == "" {
		return text
	}
	return string(c) + text + reset
}

// IsLive reports whether w is a terminal that can overwrite lines.
func IsLive(w io.Writer) bool {
	f := fileOf(w)
	// Windows consoles need a mode switch first.
	return f != nil && runtime.GOOS != "windows" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// Screen redraws a part of a terminal and leaves the rest alone. It is not safe for concurrent use.
type Screen struct {
	out   io.Writer
	size  func() (width, height int)
	drawn int // lines in the last picture
}

// NewScreen returns a screen on w, for which IsLive is true. It hides the cursor until Close.
func NewScreen(w io.Writer) *Screen {
	return newScreen(w, func() (int, int) {
		width, height, err := term.GetSize(int(fileOf(w).Fd()))
		if err != nil || width <= 0 || height <= 0 {
			return 80, 24
		}
		return width, height
	})
}

func newScreen(out io.Writer, size func() (int, int)) *Screen {
	_, _ = io.WriteString(out, hideCursor) // a Stdout remembers the error
	return &Screen{out: out, size: size}
}

// Draw replaces the last picture. It cuts long lines and drops the last lines if they do not fit.
func (s *Screen) Draw(lines []string) {
	width, height := s.size()
	lines = lines[:min(len(lines), max(1, height-1))]
	var b strings.Builder
	if up := min(s.drawn, height-1); up > 0 {
		b.WriteString(strings.Repeat("\x1b[A", up))
	}
	b.WriteString("\r")
	for _, line := range lines {
		// Some terminals wrap a full line.
		b.WriteString(Cut(line, width-1) + clearLine + "\r\n")
	}
	b.WriteString(clearBelow)
	s.drawn = len(lines)
	_, _ = io.WriteString(s.out, b.String())
}

// Close shows the cursor again. The last picture stays.
func (s *Screen) Close() { _, _ = io.WriteString(s.out, showCursor) }

// Cut returns the beginning of line that fits into width columns. Escape sequences take no column.
func Cut(line string, width int) string {
	columns := 0
	for i := 0; i < len(line); {
		if n := escape(line[i:]); n > 0 {
			i += n
			continue
		}
		plain, _, _ := strings.Cut(line[i:], "\x1b")
		begin, rest := sanitize.Cut(plain, width-columns)
		if i += len(begin); rest != "" {
			return line[:i] + reset
		}
		columns += sanitize.Width(begin)
	}
	return line
}

// escape returns the length of the escape sequence at the beginning of text, 0 for none.
func escape(text string) int {
	if !strings.HasPrefix(text, "\x1b") {
		return 0
	}
	end := strings.IndexFunc(text[1:], func(r rune) bool { return r >= '@' && r != '[' })
	if end < 0 {
		return len(text)
	}
	return 1 + end + 1
}
