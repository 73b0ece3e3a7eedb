package main

import (
	"strconv"
	"strings"
	"unicode"
)

// programName stands before what is told of what went wrong. The library's errors begin
// so, too.
const programName = "redlatch: "

// The line that says why the program failed repeats so much, in bytes, of a name, a
// flag or what a server has answered, which may all be as long as the system permits;
// and so much of everything.
const (
	wordMost = 256
	toldMost = 2048
)

// legible makes a line that a terminal can show out of what went wrong: nothing in it
// moves the cursor, whoever wrote it, and what is long loses its middle.
func legible(text string) string {
	words := strings.Split(text, " ")
	for i, word := range words {
		words[i] = shorten(word, wordMost)
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsGraphic(r) || r == '\n' {
			return r
		}
		return unicode.ReplacementChar
	}, shorten(strings.Join(words, " "), toldMost))
}

func shorten(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most/2] + "..." + text[len(text)-most/2:]
}

// unprefixed returns what went wrong without the library's name, which stands before
// the line once, and nowhere else: not where an error wraps another. What is quoted is
// somebody's name, and stays.
func unprefixed(text string) string {
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

// printable quotes what a terminal should not get as it is.
func printable(s string) string {
	if q := strconv.QuoteToGraphic(s); s == "" || q[1:len(q)-1] != s || strings.Contains(s, " ") {
		return q
	}
	return s
}

// safe is printable for a text that is a line, and so may have blanks.
func safe(text string) string {
	if q := strconv.QuoteToGraphic(text); q[1:len(q)-1] != text {
		return q
	}
	return text
}

// cut returns the beginning of a text, with dots in place of the rest.
func cut(text string, width int) string {
	if all := []rune(text); len(all) > width {
		return string(all[:width-2]) + ".."
	}
	return text
}
