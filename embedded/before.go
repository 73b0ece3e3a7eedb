package embedded

import (
	"strings"
	"unicode/utf8"

	"github.com/alicebob/miniredis/v2/server"
)

// before runs before each command, and reports whether it has answered it: with the error that
// FailWith has set. Miniredis takes patterns for regular expressions of text, and panics over
// others: in these any byte may stand in place of one that is no text.
func (s *Server) before(p *server.Peer, cmd string, args ...string) (answered bool) {
	if text := s.failing.Load(); text != nil && *text != "" {
		p.WriteError(*text)
		return true
	}
	switch cmd {
	case "PSUBSCRIBE", "PUNSUBSCRIBE", "KEYS":
		makeText(args)
	case "SCAN", "HSCAN", "SSCAN", "ZSCAN":
		for i := 1; i < len(args); i++ {
			if strings.EqualFold(args[i-1], "MATCH") {
				makeText(args[i : i+1])
			}
		}
	case "PUBSUB":
		if len(args) > 1 && strings.HasSuffix(strings.ToUpper(args[0]), "CHANNELS") {
			makeText(args[1:])
		}
	}
	return false
}

// makeText puts ? in place of each byte that is no text.
func makeText(patterns []string) {
	for i, pattern := range patterns {
		if utf8.ValidString(pattern) {
			continue
		}
		var text strings.Builder
		for rest := pattern; rest != ""; {
			r, n := utf8.DecodeRuneInString(rest)
			if r == utf8.RuneError && n == 1 {
				text.WriteByte('?')
			} else {
				text.WriteString(rest[:n])
			}
			rest = rest[n:]
		}
		patterns[i] = text.String()
	}
}
