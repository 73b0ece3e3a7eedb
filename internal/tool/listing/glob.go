package listing

import "strings"

// glob is a pattern as Redis's MATCH has it, in parts:
//
//   - any bytes, or none
//     ?      any byte
//     [ab]   one of these; [^ab] none of these; [a-c] a range
//     \x     x itself
type glob []element

// element matches one byte, or any number of any bytes.
type element struct {
	any     bool            // any number of bytes
	accepts func(byte) bool // one byte
}

// IsPattern reports whether text has characters that mean something in a pattern.
func IsPattern(text string) bool { return strings.ContainsAny(text, `*?[\`) }

// Literal returns the pattern that matches text and nothing else.
func Literal(text string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(text)
}

// Match returns a function that reports whether a name matches the pattern, as
// Redis would find it. The empty name is an exception there: of the patterns that would
// match it, such as "**", none but "" and "*" does.
func Match(pattern string) func(name string) bool {
	matches := parse(pattern).match
	return func(name string) bool {
		if name == "" {
			return pattern == "" || pattern == "*"
		}
		return matches(name)
	}
}

func parse(pattern string) glob {
	var g glob
	for i := 0; i < len(pattern); {
		var e element
		e, i = next(pattern, i)
		if !e.any || len(g) == 0 || !g[len(g)-1].any {
			g = append(g, e)
		}
	}
	return g
}

// next reads the element at i and returns where the one after it begins.
func next(pattern string, i int) (e element, after int) {
	switch c := pattern[i]; {
	case c == '*':
		return element{any: true}, i + 1
	case c == '?':
		return element{accepts: func(byte) bool { return true }}, i + 1
	case c == '[':
		return class(pattern, i+1)
	case c == '\\' && i+1 < len(pattern):
		return exactly(pattern[i+1]), i + 2
	default:
		return exactly(c), i + 1
	}
}

func exactly(want byte) element {
	return element{accepts: func(c byte) bool { return c == want }}
}

// class reads what follows an opening bracket. One that is not closed ends with the
// pattern, as in Redis.
func class(pattern string, i int) (e element, after int) {
	not := i < len(pattern) && pattern[i] == '^'
	if not {
		i++
	}
	var in [256]bool
	for i < len(pattern) && pattern[i] != ']' {
		switch {
		case pattern[i] == '\\' && i+1 < len(pattern):
			in[pattern[i+1]] = true
			i += 2
		case i+2 < len(pattern) && pattern[i+1] == '-':
			low, high := min(pattern[i], pattern[i+2]), max(pattern[i], pattern[i+2])
			for c := int(low); c <= int(high); c++ {
				in[c] = true
			}
			i += 3
		default:
			in[pattern[i]] = true
			i++
		}
	}
	return element{accepts: func(c byte) bool { return in[c] != not }}, min(i+1, len(pattern))
}

// match takes each part as early as it can, and comes back to the last star when
// that did not do: no name takes longer than its length times the pattern's.
func (g glob) match(name string) bool {
	i, star, retry := 0, -1, 0
	for n := 0; n < len(name); {
		switch {
		case i < len(g) && g[i].any:
			star, retry = i, n
			i++
		case i < len(g) && g[i].accepts(name[n]):
			i++
			n++
		case star >= 0:
			retry++
			i, n = star+1, retry
		default:
			return false
		}
	}
	for i < len(g) && g[i].any {
		i++
	}
	return i == len(g)
}
