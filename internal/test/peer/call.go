package peer

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
)

// Command is one command's fields, but for its id: "op" and what the operation
// needs, as the Java program documents it.
type Command map[string]any

// With returns the command with further fields, which replace its own.
func (c Command) With(fields Command) Command {
	all := maps.Clone(c)
	maps.Copy(all, fields)
	return all
}

// line is the command as it is sent.
func (c Command) line(id int64) ([]byte, error) {
	text, err := json.Marshal(c.With(Command{"id": id}))
	return append(text, '\n'), err
}

// ErrTimeout reports that no reply came in the time that Wait was given.
var ErrTimeout = errors.New("no reply from the Redisson peer in time")

// Call is a command that was begun.
type Call struct {
	reply chan Reply
}

// Wait returns the reply, or ErrGone when the process ended before it, or
// ErrTimeout. An exception in Java is an error too, an *Exception. It may be
// called again after ErrTimeout, and only then.
func (c *Call) Wait(atMost time.Duration) (Reply, error) {
	timer := time.NewTimer(atMost)
	defer timer.Stop()
	select {
	case reply, ok := <-c.reply:
		switch {
		case !ok:
			return Reply{}, ErrGone
		case reply.Error != "":
			return reply, &Exception{Class: reply.Error, Message: reply.Message}
		}
		return reply, nil
	case <-timer.C:
		return Reply{}, ErrTimeout
	}
}

// Exception is what a Java call threw.
type Exception struct {
	// Class is the exception's class without its package.
	Class string
	// Message is its message.
	Message string
}

// Error names the class and the message.
func (e *Exception) Error() string { return fmt.Sprintf("%s: %s", e.Class, e.Message) }

// Reply is the outcome of a command.
type Reply struct {
	// ID is the command's.
	ID int64
	// Value is what the operation returned.
	Value json.RawMessage
	// Error and Message are an exception's class and message, else empty.
	Error, Message string

	// From and To are when the work in Java began and ended, in microseconds
	// since 1970.
	From, To int64
}

// Into reads the value into what v points to.
func (r Reply) Into(v any) error {
	if err := json.Unmarshal(r.Value, v); err != nil {
		return fmt.Errorf("value %s: %w", r.Value, err)
	}
	return nil
}

// Began is when the work in Java began.
func (r Reply) Began() time.Time { return time.UnixMicro(r.From) }

// Ended is when the work in Java ended.
func (r Reply) Ended() time.Time { return time.UnixMicro(r.To) }

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailLength = 4000

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-tailLength):]
	return len(p), nil
}

// String returns what is kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
