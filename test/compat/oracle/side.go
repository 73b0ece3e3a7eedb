package oracle

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

// Failure is an error reply. Only its code counts: the rest names the script.
type Failure string

// wrongType is the reply, any, so that it compares with others.
var wrongType any = Failure("WRONGTYPE")

// side is one server, which nothing else uses.
type side struct {
	conn     redis.Conn
	listener redis.PubSubConn // receives every channel
	marks    int
}

func newSide(dial func() (redis.Conn, error)) (*side, error) {
	conn, err := dial()
	if err != nil {
		return nil, err
	}
	subscriptions, err := dial()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	s := &side{conn: conn, listener: redis.PubSubConn{Conn: subscriptions}}
	if err := s.listener.PSubscribe("*"); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if err, failed := s.listener.ReceiveWithTimeout(lineTimeout).(error); failed {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *side) close() error { return errors.Join(s.conn.Close(), s.listener.Conn.Close()) }

// command is a command of Redis.
type command struct {
	name string
	args []any
}

// ask sends commands at once and returns their replies. Error replies are among these.
func (s *side) ask(all []command) ([]any, error) {
	if len(all) == 0 {
		return nil, nil
	}
	for _, c := range all {
		if err := s.conn.Send(c.name, c.args...); err != nil {
			return nil, err
		}
	}
	return redis.Values(s.conn.Do(""))
}

// do sends commands at once. An error reply is an error.
func (s *side) do(all []command) error {
	replies, err := s.ask(all)
	for _, reply := range replies {
		if refused, ok := reply.(redis.Error); ok && err == nil {
			err = refused
		}
	}
	return err
}

// eval is the command that runs a request.
func (r request) eval() command {
	args := []any{r.script, len(r.keys)}
	for _, key := range r.keys {
		args = append(args, key)
	}
	return command{"EVAL", append(args, r.argv...)}
}

// run runs one script.
func (s *side) run(r request) (any, error) {
	c := r.eval()
	return normal(s.conn.Do(c.name, c.args...))
}

// act runs scripts in turn and looks at what there is then, in one round trip. The reply is that
// of the one script, or the list of them if the caller wants a list.
func (s *side) act(all []request, list bool) (seen Seen, err error) {
	var commands []command
	for _, r := range all {
		commands = append(commands, r.eval())
	}
	mark, publish := s.mark()
	raw, err := s.ask(append(commands, readKeys(true), publish))
	if err != nil {
		return seen, err
	}
	replies := make([]any, len(all))
	for i := range replies {
		if replies[i], err = normal(raw[i], nil); err != nil {
			return seen, err
		}
	}
	seen.Reply = oneOf(replies, list)
	var err1, err2 error
	seen.After, err1 = s.understand(raw[len(all)])
	seen.Messages, err2 = s.until(mark)
	return seen, errors.Join(err1, err2)
}

func oneOf(replies []any, list bool) any {
	if list {
		return replies
	}
	return replies[0]
}

// normal makes error replies values and bulk strings texts.
func normal(reply any, err error) (any, error) {
	if refused, ok := reply.(redis.Error); ok { // one of several replies
		reply, err = nil, refused
	}
	var refused redis.Error
	if errors.As(err, &refused) {
		return failure(refused.Error()), nil
	}
	return texts(reply), err
}

// texts makes bulk strings texts, also those in lists.
func texts(reply any) any {
	switch r := reply.(type) {
	case []byte:
		return string(r)
	case []any:
		for i := range r {
			r[i] = texts(r[i])
		}
	}
	return reply
}

// failure is an error's code. Old servers, and miniredis, have that of an error
// in a script somewhere in their own error's text.
func failure(text string) Failure {
	if (&transport.ServerError{Text: text}).HasCode("WRONGTYPE") {
		return "WRONGTYPE"
	}
	code, _, _ := strings.Cut(text, " ")
	return Failure(code)
}

// mark returns a message that ends what is read of the messages, and the command that sends it.
func (s *side) mark() (mark string, publish command) {
	s.marks++
	mark = fmt.Sprintf("mark-%d", s.marks)
	return mark, command{"PUBLISH", []any{"the end", mark}}
}

// messages returns what was published since the last time.
func (s *side) messages() ([]string, error) {
	mark, publish := s.mark()
	if err := s.do([]command{publish}); err != nil {
		return nil, err
	}
	return s.until(mark)
}

// until returns what was published before a mark.
func (s *side) until(mark string) ([]string, error) {
	got := []string{}
	for {
		switch m := s.listener.ReceiveWithTimeout(10 * time.Second).(type) {
		case redis.Message:
			if string(m.Data) == mark {
				return got, nil
			}
			got = append(got, m.Channel+" "+string(m.Data))
		case error:
			return got, m
		}
	}
}
