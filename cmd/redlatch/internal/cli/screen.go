package cli

import (
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/term"

	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

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
type Look struct {
	Colours bool
}

// LookOf returns a Look with colours if w is a terminal and NO_COLOR is not set.
func LookOf(w io.Writer) Look { return Look{Colours: IsLive(w) && os.Getenv("NO_COLOR") == ""} }

// Paint returns text in a colour.
func (l Look) Paint(c Colour, text string) string {
	if !l.Colours || c == "" || text == "" {
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
