package monitor

import (
	"crypto/sha1" //nolint:gosec // how Redis names scripts
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
)

// Call is a command that a client sent: a script, if Script is not empty.
type Call struct {
	Line

	// Script is the script's text.
	Script string
	// Keys and Argv are the script's KEYS and ARGV.
	Keys, Argv []string
}

// Name returns the command's name in upper case.
func (c Call) Name() string { return strings.ToUpper(c.Args[0]) }

// Tape turns the lines of one server, given in order, into calls. The zero Tape
// is ready to use. It is for one goroutine.
type Tape struct {
	scripts map[string]string // by SHA-1, in lower case
}

// Add takes the next line. ok is false for what a script calls, and for an
// EVALSHA of a script that the server cannot know yet: it fails with NOSCRIPT,
// and the client sends the text next. For that the tape must have run since the
// server was started.
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

// script fills in what an EVAL or EVALSHA has besides the text.
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
	sum := sha1.Sum([]byte(text)) //nolint:gosec // how Redis names scripts
	t.scripts[hex.EncodeToString(sum[:])] = text
}
