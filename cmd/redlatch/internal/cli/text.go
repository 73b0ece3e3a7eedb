package cli

import (
	"fmt"
	"io"
	"math"
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
	// Columns is used if the width of the terminal is unknown.
	Columns = 80
	hang    = 9 // the column where text begins
)

// WithDetails returns a line with an owner and its details, or two lines if they do not fit on one.
func WithDetails(owner, what string) string {
	if sanitize.Width(owner)+3+sanitize.Width(what) < Columns {
		return owner + "   " + what + "\n"
	}
	return owner + "\n" + Indented("", what)
}

// Indented returns word and text on lines that fit a terminal. It replaces control characters.
func Indented(word, text string) string { return indented(word, text, Columns-1-hang) }

// IndentedFor is like Indented, but does not wrap text for a pipe or a file.
func IndentedFor(w io.Writer, word, text string) string {
	if f := fileOf(w); f != nil && !term.IsTerminal(int(f.Fd())) {
		return indented(word, text, math.MaxInt)
	}
	return Indented(word, text)
}

func indented(word, text string, width int) string {
	return fmt.Sprintf("  %-*s", hang-2, word) + strings.Join(Wrap(text, width), "\n"+strings.Repeat(" ", hang)) + "\n"
}

// Wrap splits text into lines. It replaces control characters, and does not break commands in backquotes.
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

// Deadline formats the time until a deadline.
func Deadline(ms *int64) string {
	switch {
	case ms == nil:
		return "none"
	case *ms > 0:
		return "in " + Millis(*ms)
	}
	return Millis(-*ms) + " ago"
}

// Millis formats milliseconds as a duration.
func Millis(ms int64) string {
	return limits.Show(limits.FromMillis(ms), 100*time.Millisecond)
}

// Lease formats the remaining lease in at most seven columns.
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

// Messagef writes a message. It replaces control characters.
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
	return fold(text, width-1)
}

// fold wraps text but preserves consecutive spaces, which may be part of a name.
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

const reset = "\x1b[0m"

// Colour is the escape sequence of a color, or "" for plain text.
type Colour string

// The colors in use.
const (
	Green  Colour = "\x1b[32m"
	Yellow Colour = "\x1b[33m"
	Red    Colour = "\x1b[1;31m"
	Bold   Colour = "\x1b[1m"
	Dim    Colour = "\x1b[2m"
)

// Look is true if Paint may use colors.
type Look bool

// LookOf allows colors if w is a terminal and NO_COLOR is not set.
func LookOf(w io.Writer) Look {
	f := fileOf(w)
	return Look(f != nil && runtime.GOOS != "windows" && os.Getenv("TERM") != "dumb" && os.Getenv("NO_COLOR") == "" && term.IsTerminal(int(f.Fd())))
}

// Paint returns text in the given color.
func (l Look) Paint(c Colour, text string) string {
	if !bool(l) || c == "" || text == "" {
		return text
	}
	return string(c) + text + reset
}
