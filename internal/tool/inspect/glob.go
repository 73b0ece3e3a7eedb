package inspect

import (
	"fmt"
	"regexp"
	"strings"
)

// IsPattern reports whether text has special pattern characters.
func IsPattern(text string) bool { return strings.ContainsAny(text, `*?[\`) }

// Literal returns the pattern that matches only text.
func Literal(text string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(text)
}

// Match returns a function that matches names by the rules of Redis. The empty name matches only ""
// and "*".
func Match(pattern string) func(name string) bool {
	matches := expression(pattern)
	return func(name string) bool {
		if name == "" {
			return pattern == "" || pattern == "*"
		}
		return matches.MatchString(runes(name))
	}
}

// runes returns text with one rune per byte, because patterns match bytes.
func runes(text string) string {
	all := make([]rune, len(text))
	for i := range all {
		all[i] = rune(text[i])
	}
	return string(all)
}

func expression(pattern string) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`(?s)\A`)
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '*' && strings.HasSuffix(b.String(), ".*"):
		case c == '*':
			b.WriteString(".*")
		case c == '?':
			b.WriteByte('.')
		case c == '[':
			i = class(&b, pattern, i+1)
		default:
			if c == '\\' && i+1 < len(pattern) {
				i++
			}
			fmt.Fprintf(&b, `\x{%x}`, pattern[i])
		}
	}
	return regexp.MustCompile(b.String() + `\z`)
}

// class translates a character class and returns the index of its end.
func class(b *strings.Builder, pattern string, i int) (last int) {
	open, none := "[", `[^\x00-\x{ff}]`
	if i < len(pattern) && pattern[i] == '^' {
		open, none = "[^", "."
		i++
	}
	ranges := ""
	for i < len(pattern) && pattern[i] != ']' {
		low, high := pattern[i], pattern[i]
		switch {
		case low == '\\' && i+1 < len(pattern):
			low, high = pattern[i+1], pattern[i+1]
			i += 2
		case i+2 < len(pattern) && pattern[i+1] == '-':
			low, high = min(low, pattern[i+2]), max(low, pattern[i+2])
			i += 3
		default:
			i++
		}
		ranges += fmt.Sprintf(`\x{%x}-\x{%x}`, low, high)
	}
	if ranges == "" {
		b.WriteString(none)
	} else {
		b.WriteString(open + ranges + "]")
	}
	return i
}
