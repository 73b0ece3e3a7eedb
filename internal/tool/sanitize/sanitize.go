// Package sanitize makes text that others wrote (names, owners, labels, answers of
// servers) fit to be shown on a terminal: no control characters, bounded length.
package sanitize

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// programName comes before each error on the terminal. The library's errors begin with it,
// too.
const programName = "redlatch: "

// The line that says why the program failed repeats so much, in bytes, of a name, a
// flag or what a server has answered, which may all be as long as the system permits;
// and so much of everything.
const (
	maxWord = 256
	// MaxMessage is the most bytes that Message leaves of a text.
	MaxMessage = 2048
)

// Message makes text safe for a terminal: no control sequence in it, of any source, reaches
// the terminal, and the middle of a long one is cut.
func Message(text string) string {
	words := strings.Split(text, " ")
	for i, word := range words {
		words[i] = shorten(word, maxWord)
	}
	return Text(shorten(strings.Join(words, " "), MaxMessage))
}

// Text is Message for a text of any length: line breaks stay, and nothing else that a terminal
// heeds.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) || r == '\n' {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most/2] + "..." + text[len(text)-most/2:]
}

// WithoutPrefix removes the library's name from an error text: the line begins with it
// once, also where an error wraps another. Within quotes it is part of a name, and stays.
func WithoutPrefix(text string) string {
	var b strings.Builder
	quoted, begins := false, true
	for i := 0; i < len(text); {
		if begins && !quoted && strings.HasPrefix(text[i:], programName) {
			i += len(programName)
			continue
		}
		c := text[i]
		switch {
		case c == '\\' && quoted && i+1 < len(text):
			b.WriteByte(c)
			i++
			c = text[i]
		case c == '"':
			quoted = !quoted
		}
		b.WriteByte(c)
		i++
		begins = c == '\n' || c == ' ' && i > 1 && strings.IndexByte(":;", text[i-2]) >= 0
	}
	return b.String()
}

// Word quotes what a terminal should not get as it is.
func Word(s string) string {
	if q := strconv.QuoteToGraphic(s); s == "" || q[1:len(q)-1] != s || strings.Contains(s, " ") {
		return q
	}
	return s
}

// Quote makes text one word of a shell, whatever it has.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Line is Word for a text that is a line, and so may have blanks.
func Line(text string) string {
	if q := strconv.QuoteToGraphic(text); q[1:len(q)-1] != text {
		return q
	}
	return text
}

// Width returns how many columns of a terminal a text takes: two for each character of Chinese,
// Japanese and Korean and for most emoji, and none for what joins the character before it.
func Width(text string) int { return uniseg.StringWidth(text) }

// Pad fills a text up with blanks to so many columns.
func Pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-Width(text)))
}

// Cut returns the beginning of a text that takes at most so many columns, and the rest.
func Cut(text string, columns int) (begin, rest string) {
	used, state, left := 0, -1, text
	for left != "" {
		_, behind, width, next := uniseg.FirstGraphemeClusterInString(left, state)
		if used+width > columns {
			break
		}
		used, left, state = used+width, behind, next
	}
	return text[:len(text)-len(left)], left
}

// Truncate returns the beginning of a text that takes more than so many columns, with dots in
// place of the rest.
func Truncate(text string, columns int) string {
	if Width(text) <= columns {
		return text
	}
	begin, _ := Cut(text, columns-len(".."))
	return begin + ".."
}
