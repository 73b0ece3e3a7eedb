package cli

import (
	"fmt"
	"strings"
	"time"
	"unicode"

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

// words splits text at white space outside pairs of backquotes.
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
