package embedded

import (
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/alicebob/miniredis/v2/server"
)

// guarded runs before each command, and runs it, so that a panic of miniredis ends the connection
// and not the process. It is called again for the commands that it runs.
func (s *Server) guarded(p *server.Peer, cmd string, args ...string) (answered bool) {
	if _, again := s.running.LoadOrStore(p, true); again {
		return s.before(p, cmd, args...)
	}
	defer s.running.Delete(p)
	defer func() {
		if v := recover(); v != nil {
			s.unlock(v)
			p.WriteError(fmt.Sprintf("ERR miniredis cannot run %s: %v", cmd, v))
			p.Close()
		}
	}()
	answered = true
	s.srv.Dispatch(p, append([]string{cmd}, args...))
	return answered
}

// unlock releases miniredis's mutex, where the command that panicked with v has left it locked. A
// command of a script panics again: the script reports it.
func (s *Server) unlock(v any) {
	switch stack := string(debug.Stack()); {
	case strings.Count(stack, "(*Server).guarded(") > 1:
		panic(v)
	case strings.Contains(stack, "miniredis/v2.withTx("):
		s.mini.Unlock()
	}
}

// before runs before each command, and reports whether it has answered it: with the error that
// FailWith has set. Miniredis makes regular expressions of patterns, and panics where it cannot: in
// these any byte may stand in place of what is no text, and of what is no set of characters.
func (s *Server) before(p *server.Peer, cmd string, args ...string) (answered bool) {
	if text := s.failing.Load(); text != nil && *text != "" {
		p.WriteError(*text)
		return true
	}
	switch cmd {
	case "PSUBSCRIBE", "PUNSUBSCRIBE", "KEYS":
		makeRegular(args)
	case "SCAN", "HSCAN", "SSCAN", "ZSCAN":
		for i := 1; i < len(args); i++ {
			if strings.EqualFold(args[i-1], "MATCH") {
				makeRegular(args[i : i+1])
			}
		}
	case "PUBSUB":
		if len(args) > 1 && strings.HasSuffix(strings.ToUpper(args[0]), "CHANNELS") {
			makeRegular(args[1:])
		}
	}
	return false
}

// makeRegular puts ? in place of what miniredis can make no regular expression of.
func makeRegular(patterns []string) {
	for i, pattern := range patterns {
		patterns[i] = regular(textOf(pattern))
	}
}

// textOf returns a pattern with ? in place of each byte that is no text.
func textOf(pattern string) string {
	if utf8.ValidString(pattern) {
		return pattern
	}
	var out strings.Builder
	for rest := pattern; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		if r == utf8.RuneError && n == 1 {
			out.WriteByte('?')
		} else {
			out.WriteString(rest[:n])
		}
		rest = rest[n:]
	}
	return out.String()
}

// regular returns a pattern with ? in place of each set of characters, such as [z-a], that is none
// in a regular expression, and a set in place of each backslash that would end a quotation there.
func regular(pattern string) string {
	var out strings.Builder
	for rest := pattern; rest != ""; {
		n := 1
		switch rest[0] {
		case '\\':
			n = min(2, len(rest))
		case '[':
			n = setLen(rest)
		}
		part := withoutClasses(rest[:n])
		rest = rest[n:]
		switch {
		case part == `\\` && strings.HasPrefix(strings.TrimPrefix(rest, `\`), "E"):
			part = `[\\]`
		case part[0] == '[' && part != "[]" && !isSet(part):
			part = "?"
		}
		out.WriteString(part)
	}
	return out.String()
}

// setLen returns how long the set of characters is that a pattern begins with.
func setLen(pattern string) int {
	for i := 1; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case ']':
			return i + 1
		}
	}
	return len(pattern)
}

// withoutClasses returns a set of characters in which [: stands for these two. In a regular expression
// it begins a class, which would end with the next :], wherever in the pattern that is.
func withoutClasses(set string) string {
	var out strings.Builder
	for i := 0; i < len(set); i++ {
		switch {
		case set[i] == '\\' && i+1 < len(set):
			out.WriteByte('\\')
			i++
		case i > 0 && strings.HasPrefix(set[i:], "[:"):
			out.WriteByte('\\')
		}
		out.WriteByte(set[i])
	}
	return out.String()
}

// isSet reports whether a set of characters is one in a regular expression, too.
func isSet(set string) bool {
	_, err := regexp.Compile(set)
	return err == nil
}
