package transport

import (
	"errors"
	"strings"
)

var (
	// ErrNotSent reports that a call certainly did not run and never will: it
	// was withdrawn, or no connection could be had. Sending it again is safe.
	ErrNotSent = errors.New("redlatch: command not sent")

	// ErrUncertain reports that a call was sent, or may have been, and that its
	// reply was lost: it may have run, or may still run.
	ErrUncertain = errors.New("redlatch: command sent, reply lost")

	// ErrClosed reports that the transport, or the client above it, was closed.
	ErrClosed = errors.New("redlatch: client closed")

	// ErrBadReply reports a reply of a type or value that the script or command
	// never gives.
	ErrBadReply = errors.New("redlatch: unexpected reply")
)

// ServerError is an error that the server sent as the reply to a call.
type ServerError struct {
	// Text is the whole error line, without the leading minus sign.
	Text string
}

// shown bounds how much of the server's text an error message repeats.
const shown = 1024

// Error returns the server's own text, marked as such, its first kilobyte only.
func (e *ServerError) Error() string {
	text := e.Text
	if len(text) > shown {
		text = strings.ToValidUTF8(text[:shown], "") + "..."
	}
	return "redis: " + text
}

// Code returns the first word of the error line, such as WRONGTYPE or NOPERM.
func (e *ServerError) Code() string {
	code, _, _ := strings.Cut(e.Text, " ")
	return code
}

// HasCode reports whether the server's error carries code. Servers before
// Redis 7 wrap the errors of commands inside a script in a sentence of their
// own, so the code may stand anywhere as a word in capitals.
func (e *ServerError) HasCode(code string) bool {
	if e.Code() == code {
		return true
	}
	if c := e.Code(); c != "ERR" {
		return false
	}
	return strings.Contains(e.Text, " "+code+" ") || strings.Contains(e.Text, "-"+code+" ")
}

// IsFull reports whether the server has no room for another connection: it answers the first command
// of one so, has run nothing, and hangs up. There is no code for it.
func (e *ServerError) IsFull() bool { return strings.HasPrefix(e.Text, "ERR max number of clients") }

// IsCode reports whether err is, or wraps, a [*ServerError] that carries code.
func IsCode(err error, code string) bool {
	if err == nil {
		return false // the usual case, for which what follows would allocate
	}
	var se *ServerError
	return errors.As(err, &se) && se.HasCode(code)
}
