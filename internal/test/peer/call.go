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

// Command contains the fields of a command for the Java program.
type Command map[string]any

// With returns a copy of the command in which the given fields are added or replaced.
func (c Command) With(fields Command) Command {
	all := maps.Clone(c)
	maps.Copy(all, fields)
	return all
}

func (c Command) line(id int64) ([]byte, error) {
	text, err := json.Marshal(c.With(Command{"id": id}))
	return append(text, '\n'), err
}

// ErrTimeout is returned by Call.Wait. After this error, Wait may be called again.
var ErrTimeout = errors.New("no reply from the Redisson peer in time")

// Call is a command that has been started.
type Call struct{ reply chan Reply }

// Wait returns the reply. The error is an *Exception, ErrGone or ErrTimeout.
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

// Exception is an exception that a Java call has thrown. Class is its name without the package.
type Exception struct{ Class, Message string }

// Error returns the class and the message.
func (e *Exception) Error() string { return fmt.Sprintf("%s: %s", e.Class, e.Message) }

// Reply is the reply to a command.
type Reply struct {
	ID             int64
	Value          json.RawMessage
	Error, Message string
	From, To       int64 // microseconds since 1970
}

// Into unmarshals the value into v.
func (r Reply) Into(v any) error {
	if err := json.Unmarshal(r.Value, v); err != nil {
		return fmt.Errorf("value %s: %w", r.Value, err)
	}
	return nil
}

// Began returns the time at which the Java program began to run the command.
func (r Reply) Began() time.Time { return time.UnixMicro(r.From) }

// Ended returns the time at which the Java program finished the command.
func (r Reply) Ended() time.Time { return time.UnixMicro(r.To) }

type tail struct {
	mu   sync.Mutex
	text []byte
}

const tailLength = 4000

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	t.text = t.text[max(0, len(t.text)-tailLength):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}
