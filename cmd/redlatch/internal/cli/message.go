package cli

import (
	"fmt"
	"io"
	"strings"

	"golang.org/x/term"

	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

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
