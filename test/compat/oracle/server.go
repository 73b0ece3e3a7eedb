package oracle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

// Failure is the code of an error reply.
type Failure string

var wrongType any = Failure("WRONGTYPE")

type side struct {
	conn     redis.Conn
	listener redis.PubSubConn
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

type command struct {
	name string
	args []any
}

// ask sends all commands in one pipeline. Errors are among the replies that it returns.
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

func (s *side) do(all []command) error {
	replies, err := s.ask(all)
	for _, reply := range replies {
		if refused, ok := reply.(redis.Error); ok && err == nil {
			err = refused
		}
	}
	return err
}

func (r request) eval() command {
	args := []any{r.script, len(r.keys)}
	for _, key := range r.keys {
		args = append(args, key)
	}
	return command{"EVAL", append(args, r.argv...)}
}

func (s *side) run(r request) (any, error) {
	c := r.eval()
	return normal(s.conn.Do(c.name, c.args...))
}

func (s *side) act(all []request, list bool) (seen Seen, err error) {
	var commands []command
	for _, r := range all {
		commands = append(commands, r.eval())
	}
	mark, publish := s.mark()
	raw, err := s.ask(append(commands, readKeys, publish))
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

func normal(reply any, err error) (any, error) {
	if refused, ok := reply.(redis.Error); ok {
		reply, err = nil, refused
	}
	var refused redis.Error
	if errors.As(err, &refused) {
		return failure(refused.Error()), nil
	}
	return texts(reply), err
}

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

// failure returns the code of an error, which may be embedded in the text of another error.
func failure(text string) Failure {
	if transport.IsCode(&transport.ServerError{Text: text}, "WRONGTYPE") {
		return "WRONGTYPE"
	}
	code, _, _ := strings.Cut(text, " ")
	return Failure(code)
}

// mark returns a message that marks the end of the messages that were published before it.
func (s *side) mark() (mark string, publish command) {
	s.marks++
	mark = fmt.Sprintf("mark-%d", s.marks)
	return mark, command{"PUBLISH", []any{"the end", mark}}
}

func (s *side) messages() ([]string, error) {
	mark, publish := s.mark()
	if err := s.do([]command{publish}); err != nil {
		return nil, err
	}
	return s.until(mark)
}

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

// readAll reads all keys in one script. Servers before 7.0 do not return the absolute expiry.
const readAll = `
local readers = {hash = {'HGETALL'}, string = {'GET'}, list = {'LRANGE', 0, -1}, zset = {'ZRANGE', 0, -1, 'WITHSCORES'}}
local all = {}
for _, name in ipairs(redis.call('KEYS', '*')) do
	local kind = redis.call('TYPE', name).ok
	local reader = readers[kind]
	local value = reader and redis.call(reader[1], name, unpack(reader, 2))
	if kind ~= 'none' then -- it has not expired meanwhile
		local dump = ARGV[1] == '1' and redis.call('DUMP', name)
		all[#all + 1] = {name, kind, redis.pcall('PEXPIRETIME', name), value or false, dump}
	end
end
return all`

var readKeys = command{"EVAL", []any{readAll, 0}}

func (s *side) state() (State, error) {
	reply, err := s.conn.Do(readKeys.name, readKeys.args...)
	if err != nil {
		return nil, err
	}
	return s.understand(reply)
}

func (s *side) understand(reply any) (State, error) {
	keys, err := redis.Values(reply, nil)
	if err != nil {
		return nil, err
	}
	all := State{}
	for _, key := range keys {
		parts, err := redis.Values(key, nil)
		if err != nil {
			return nil, err
		}
		name, err := redis.String(parts[0], nil)
		if err != nil {
			return nil, err
		}
		if all[name], err = s.entry(name, parts[1:]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (s *side) entry(name string, parts []any) (e Entry, err error) {
	var err1, err2, err3 error
	e.Type, err1 = redis.String(parts[0], nil)
	e.Expires, err2 = redis.Int64(parts[1], nil)
	e.Value, err3 = valueOf(e.Type, parts[2])
	var refused redis.Error
	if errors.As(err2, &refused) {
		e.Expires, err2 = s.expires(name)
	}
	return e, errors.Join(err1, err2, err3)
}

func valueOf(kind string, reply any) (any, error) {
	switch kind {
	case "hash":
		return redis.StringMap(reply, nil)
	case "string":
		return redis.String(reply, nil)
	case "list":
		return redis.Strings(reply, nil)
	case "zset":
		return redis.Float64Map(reply, nil)
	}
	return nil, fmt.Errorf("oracle: a key has type %q", kind)
}

// expires returns the time at which a key expires. It reads the remaining time until the clock shows the same
// millisecond before and after.
func (s *side) expires(name string) (int64, error) {
	for {
		before, err1 := s.now()
		left, err2 := redis.Int64(s.conn.Do("PTTL", name))
		after, err3 := s.now()
		if err := errors.Join(err1, err2, err3); err != nil || left < 0 {
			return left, err
		}
		if before == after {
			return before + left, nil
		}
	}
}

func (s *side) now() (int64, error) { return millis(s.conn.Do("TIME")) }

func millis(reply any, err error) (int64, error) {
	parts, err := redis.Int64s(reply, err)
	if err != nil {
		return 0, err
	}
	return parts[0]*1000 + parts[1]/1000, nil
}

func (s *side) become(all State) error {
	var commands []command
	for name, e := range all {
		if e.Expires != never {
			commands = append(commands, command{"PEXPIREAT", []any{name, e.Expires}})
		}
	}
	return s.make(all, commands...)
}

func (s *side) make(all State, more ...command) error {
	commands := []command{{"FLUSHDB", nil}}
	for name, e := range all {
		c, err := e.maker(name)
		if err != nil {
			return err
		}
		commands = append(commands, c)
	}
	return s.do(append(commands, more...))
}

func (e Entry) maker(name string) (command, error) {
	args := []any{name}
	switch v := e.Value.(type) {
	case map[string]string:
		for _, field := range slices.Sorted(maps.Keys(v)) {
			args = append(args, field, v[field])
		}
		return command{"HSET", args}, nil
	case string:
		return command{"SET", append(args, v)}, nil
	case []string:
		for _, item := range v {
			args = append(args, item)
		}
		return command{"RPUSH", args}, nil
	case map[string]float64:
		for _, member := range slices.Sorted(maps.Keys(v)) {
			args = append(args, strconv.FormatFloat(v[member], 'f', -1, 64), member)
		}
		return command{"ZADD", args}, nil
	}
	return command{}, fmt.Errorf("oracle: key %q is a %T", name, e.Value)
}
