package monitor

import (
	"errors"
	"fmt"
	"strings"
)

// ErrBadLine reports a line that MONITOR cannot have written.
var ErrBadLine = errors.New("monitor: bad line")

// Line is one command as MONITOR shows it.
type Line struct {
	// Time is the server's time, seconds and microseconds: "1795266126.110435".
	Time string
	// DB is the number of the database.
	DB string
	// Source is the client's address, or "lua" for what a script calls.
	Source string
	// Args has the command's name as it was sent, and its arguments.
	Args []string
}

// FromScript reports whether a script called the command.
func (l Line) FromScript() bool { return l.Source == "lua" }

// Parse reads one line. It returns an error that wraps ErrBadLine for anything
// that is not one, such as the OK that MONITOR begins with.
func Parse(text string) (Line, error) {
	stamp, rest, ok1 := strings.Cut(text, " [")
	where, rest, ok2 := strings.Cut(rest, "] ")
	db, source, ok3 := strings.Cut(where, " ")
	if !ok1 || !ok2 || !ok3 {
		return Line{}, fmt.Errorf("%w: %.80q", ErrBadLine, text)
	}
	line := Line{Time: stamp, DB: db, Source: source}
	for rest != "" {
		arg, after, err := unquote(rest)
		if err != nil {
			return Line{}, err
		}
		line.Args = append(line.Args, arg)
		rest = strings.TrimPrefix(after, " ")
	}
	if len(line.Args) == 0 {
		return Line{}, fmt.Errorf("%w: no command in %.80q", ErrBadLine, text)
	}
	return line, nil
}

// unquote reads the quoted string that text begins with and returns what
// follows it.
func unquote(text string) (arg, rest string, err error) {
	if !strings.HasPrefix(text, `"`) {
		return "", "", fmt.Errorf("%w: no quote at %.80q", ErrBadLine, text)
	}
	var b strings.Builder
	for i := 1; i < len(text); {
		switch text[i] {
		case '"':
			return b.String(), text[i+1:], nil
		case '\\':
			c, n := unescape(text[i:])
			if n == 0 {
				return "", "", fmt.Errorf("%w: escape at %.80q", ErrBadLine, text[i:])
			}
			b.WriteByte(c)
			i += n
		default:
			b.WriteByte(text[i])
			i++
		}
	}
	return "", "", fmt.Errorf("%w: no closing quote after %.80q", ErrBadLine, text)
}

// unescape reads one escape and returns its length, 0 if it is none that
// servers write.
func unescape(text string) (c byte, length int) {
	if len(text) < 2 {
		return 0, 0
	}
	switch text[1] {
	case '\\', '"':
		return text[1], 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'a':
		return '\a', 2
	case 'b':
		return '\b', 2
	case 'x':
		return hexByte(text)
	}
	return 0, 0
}

// hexByte reads \x and two digits.
func hexByte(text string) (c byte, length int) {
	if len(text) < 4 {
		return 0, 0
	}
	high, low := digit(text[2]), digit(text[3])
	if high < 0 || low < 0 {
		return 0, 0
	}
	return byte(high<<4 | low), 4
}

// digit is the value of a hexadecimal digit in lower case, −1 for others.
func digit(c byte) int { return strings.IndexByte("0123456789abcdef", c) }
