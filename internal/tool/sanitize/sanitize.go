// Package sanitize makes untrusted text, such as names, owners, labels and replies from servers,
// safe for terminals. It replaces control characters and limits the length.
package sanitize

import (
	"net"
	"regexp"
	"strconv"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// programName is the beginning of each error line and of errors from the library.
const programName = "redlatch: "

// maxWord is the maximum length of a word of a message, in bytes.
const (
	maxWord = 256
	// MaxMessage is the maximum length of the result of Message, in bytes.
	MaxMessage = 2048
)

// Message makes text safe for a terminal, and cuts out the middle of long words and of long texts.
// A command in backquotes stays whole or is cut out, because its arguments may come from others:
// without its middle, a shell may read a name's end as a command.
func Message(text string) string {
	words, inside := strings.Split(text, " "), false
	for i, word := range words {
		if !inside {
			words[i] = shorten(word, maxWord)
		}
		inside = strings.HasSuffix(word, command) || inside && !strings.Contains(word, "`")
	}
	text = strings.Join(words, " ")
	if len(text) > MaxMessage {
		begin, end := text[:MaxMessage/2], text[len(text)-MaxMessage/2:]
		if i := unclosed(begin); i >= 0 {
			begin = begin[:i]
		}
		if unclosed(strings.TrimSuffix(text, end)) >= 0 {
			_, end, _ = strings.Cut(end, "`")
		}
		text = begin + "..." + end
	}
	return Text(text)
}

// command begins the commands that messages suggest. Their arguments contain no backquotes.
const command = "`redlatch"

// unclosed returns where an unclosed command begins, or -1.
func unclosed(text string) int {
	if i := strings.LastIndex(text, command+" "); i >= 0 && !strings.Contains(text[i+1:], "`") {
		return i
	}
	return -1
}

// Text is like Message without the limits. It keeps line breaks.
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

// WithoutPrefix removes the library's name from an error and from the errors that it wraps, except
// within quotes.
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

// Word quotes s unless it is a single plain word.
func Word(s string) string {
	if q := strconv.QuoteToGraphic(s); s == "" || q[1:len(q)-1] != s || strings.Contains(s, " ") {
		return q
	}
	return s
}

// Quote quotes text for a shell, as a single word.
func Quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// zsh replaces =name with the path of a command.
var plain = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,][A-Za-z0-9_./:@%+=,-]*$`)

// Arg is like Quote, but leaves text that no shell changes as it is.
func Arg(text string) string {
	if plain.MatchString(text) {
		return text
	}
	return Quote(text)
}

// Line is like Word, but allows blanks.
func Line(text string) string {
	if q := strconv.QuoteToGraphic(text); q[1:len(q)-1] != text {
		return q
	}
	return text
}

// Width returns the columns that text takes on a terminal. Wide characters take two, and combining
// characters take none.
func Width(text string) int { return uniseg.StringWidth(text) }

// Pad appends blanks to text until it is columns wide.
func Pad(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-Width(text)))
}

// Cut splits text into a beginning that fits into columns, and the rest.
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

// Truncate shortens text that is wider than columns, and ends it with dots.
func Truncate(text string, columns int) string {
	if Width(text) <= columns {
		return text
	}
	begin, _ := Cut(text, columns-len(".."))
	return begin + ".."
}

// Host returns the host in a Host header or an address, in lower case and without the port.
func Host(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return strings.ToLower(host)
	}
	return strings.ToLower(strings.TrimSuffix(strings.TrimPrefix(address, "["), "]"))
}
