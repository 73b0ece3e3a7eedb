package main

import (
	"strings"
	"unicode"
)

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
