package transport

import (
	"errors"
	"strings"
)

var (
	// ErrNotSent means that a call did not run and never will, because it was withdrawn or there
	// was no connection. It may be retried.
	ErrNotSent = errors.New("redlatch: command not sent")

	// ErrUncertain means that a call may have been sent and its reply was lost: it may have run,
	// or may still run.
	ErrUncertain = errors.New("redlatch: command sent, reply lost")

	// ErrClosed means that the transport, or the client above it, was closed.
	ErrClosed = errors.New("redlatch: client closed")

	// ErrBadReply means that a reply has a type or value that the script or command never
	// returns.
	ErrBadReply = errors.New("redlatch: unexpected reply")
)

// ServerError is an error that the server sent in reply to a call.
type ServerError struct {
	// Text is the error line without the leading minus sign.
	Text string
}

const shown = 1024

// Error returns the first kilobyte of the server's text, with a prefix.
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

// IsCode reports whether err is, or wraps, a [*ServerError] with code, such as READONLY. Servers before
// Redis 7 wrap the errors of commands run by scripts, so in an ERR reply the code may be any word of
// the text.
func IsCode(err error, code string) bool {
	if err == nil {
		return false // the usual case, for which errors.As would allocate
	}
	var e *ServerError
	switch {
	case !errors.As(err, &e):
		return false
	case e.Code() == code:
		return true
	case e.Code() != "ERR":
		return false
	}
	return strings.Contains(e.Text, " "+code+" ") || strings.Contains(e.Text, "-"+code+" ")
}
