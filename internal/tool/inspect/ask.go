package inspect

import (
	"errors"
	"strings"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/label"
)

// call is one command.
type call struct {
	name string
	args []any
}

func command(name string, args ...any) call { return call{name, args} }

// ask sends all calls at once and returns a reply for each, which is a redis.Error
// where the server refused, and another error where a node of a cluster did not answer. An error
// says that the connection is broken.
func ask(c redis.Conn, calls []call) ([]any, error) {
	for _, call := range calls {
		if err := c.Send(call.name, call.args...); err != nil {
			return nil, err
		}
	}
	if err := c.Flush(); err != nil {
		return nil, err
	}
	replies := make([]any, len(calls))
	for i := range calls {
		reply, err := c.Receive()
		var refused redis.Error
		switch {
		case errors.As(err, &refused):
			reply = refused
		case err != nil && c.Err() == nil:
			reply = err
		case err != nil:
			return nil, err
		}
		replies[i] = reply
	}
	return replies, nil
}

// refusal returns why the server has refused to look into a key. That it holds another kind of value
// by now is none.
func refusal(reply any) (redis.Error, bool) {
	refused, is := reply.(redis.Error)
	return refused, is && !strings.HasPrefix(string(refused), "WRONGTYPE")
}

// unanswered returns why a node of a cluster did not answer, nil when it did.
func unanswered(reply any) error {
	if _, refused := reply.(redis.Error); refused {
		return nil
	}
	err, _ := reply.(error)
	return err
}

// text returns a reply as text, "" for other replies.
func text(reply any) string {
	s, err := redis.String(reply, nil)
	if err != nil {
		return ""
	}
	return s
}

// number returns a reply as a number, 0 for other replies.
func number(reply any) int64 {
	n, isNumber := reply.(int64)
	if !isNumber {
		return 0
	}
	return n
}

// Labels returns the labels of the clients that owners are of, by owner; owners
// without one are left out. What the user may not read counts as none. It sends one
// GETRANGE for each client, all at once.
func Labels(c redis.Conn, owners []string) (map[string]string, error) {
	byKey := map[string][]string{}
	var calls []call
	for _, text := range owners {
		bare, _ := codec.WriterOf(text)
		owner, err := redlatch.ParseOwner(bare)
		if err != nil {
			continue
		}
		key := label.Key(owner.Client())
		if byKey[key] == nil {
			calls = append(calls, command("GETRANGE", key, 0, label.MaxLen-1))
		}
		byKey[key] = append(byKey[key], text)
	}
	replies, err := ask(c, calls)
	if err != nil {
		return nil, err
	}
	labels := map[string]string{}
	for i, reply := range replies {
		key, isText := calls[i].args[0].(string)
		said := text(reply)
		if !isText || said == "" {
			continue
		}
		for _, owner := range byKey[key] {
			labels[owner] = said
		}
	}
	return labels, nil
}
