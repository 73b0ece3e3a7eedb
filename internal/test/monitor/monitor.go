// Package monitor parses the output of MONITOR and identifies the scripts that clients run.
package monitor

import (
	"crypto/sha1" //nolint:gosec // Redis identifies scripts by it
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrBadLine is returned for a line that MONITOR does not print for a command.
var ErrBadLine = errors.New("monitor: bad line")

// Line is a line of MONITOR.
type Line struct {
	// Time is the server's time, such as "1795266126.110435".
	Time string
	DB   string
	// Source is the client's address, or "lua" if a script called the command.
	Source string
	Args   []string
}

// FromScript reports whether a script called the command.
func (l Line) FromScript() bool { return l.Source == "lua" }

// Parse parses a line. It returns ErrBadLine for the initial OK.
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

func digit(c byte) int { return strings.IndexByte("0123456789abcdef", c) }

// Call is a command or script that a client called.
type Call struct {
	Line

	Script     string
	Keys, Argv []string
}

// Name returns the command's upper-case name.
func (c Call) Name() string { return strings.ToUpper(c.Args[0]) }

// Tape converts lines to calls. The zero value is ready to use. A Tape is not safe for concurrent use.
type Tape struct {
	scripts map[string]string // SHA-1 -> text
}

// Add adds the next line. It returns false for commands that scripts call, and for EVALSHA of an unknown script.
func (t *Tape) Add(line Line) (call Call, ok bool, err error) {
	if line.FromScript() {
		return Call{}, false, nil
	}
	call = Call{Line: line}
	switch name := call.Name(); {
	case name == "SCRIPT" && len(line.Args) == 3 && strings.EqualFold(line.Args[1], "LOAD"):
		t.learn(line.Args[2])
	case name == "EVAL" && len(line.Args) >= 3:
		t.learn(line.Args[1])
		err = call.script(line.Args[1])
	case name == "EVALSHA" && len(line.Args) >= 3:
		text, known := t.scripts[strings.ToLower(line.Args[1])]
		if !known {
			return Call{}, false, nil
		}
		err = call.script(text)
	}
	return call, err == nil, err
}

func (c *Call) script(text string) error {
	n, err := strconv.Atoi(c.Args[2])
	if err != nil || n < 0 || len(c.Args) < 3+n {
		return fmt.Errorf("%w: %s with %q keys of %d arguments", ErrBadLine, c.Args[0], c.Args[2], len(c.Args))
	}
	c.Script, c.Keys, c.Argv = text, c.Args[3:3+n], c.Args[3+n:]
	return nil
}

func (t *Tape) learn(text string) {
	if t.scripts == nil {
		t.scripts = map[string]string{}
	}
	sum := sha1.Sum([]byte(text)) //nolint:gosec // Redis identifies scripts by it
	t.scripts[hex.EncodeToString(sum[:])] = text
}

// LongestRead returns the line that reads the most elements, if each key has n elements, and their number. The reads of
// a script count for the command that called it.
func LongestRead(lines []Line, n int) (most int, by Line) {
	read, sent := 0, Line{}
	for _, line := range lines {
		if !line.FromScript() {
			read, sent = 0, line
		}
		if read += places(line.Args, n); read > most {
			most, by = read, sent
		}
	}
	return most, by
}

func places(args []string, n int) int {
	name := strings.ToUpper(args[0])
	if name != "LRANGE" && name != "ZRANGE" || len(args) < 4 {
		return 0
	}
	first, err := strconv.Atoi(args[2])
	if err != nil {
		return n
	}
	last, err := strconv.Atoi(args[3])
	if err != nil {
		return n
	}
	if first < 0 {
		first = max(0, first+n)
	}
	if last < 0 {
		last += n
	}
	return max(0, min(last, n-1)-first+1)
}
