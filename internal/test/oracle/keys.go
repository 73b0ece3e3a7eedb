package oracle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/gomodule/redigo/redis"
)

// state reads all keys, with their dumps if they are wanted. It asks about all of them at once:
// round trips are what takes the time here.
func (s *side) state(dumps bool) (State, error) {
	names, err := redis.Strings(s.conn.Do("KEYS", "*"))
	if err != nil {
		return nil, err
	}
	all, err := s.heads(names, dumps)
	if err != nil {
		return nil, err
	}
	return all, s.values(all)
}

// heads reads what keys have besides their values. Keys that expired while it looked are left
// out.
func (s *side) heads(names []string, dumps bool) (State, error) {
	questions := []string{"TYPE", "PEXPIRETIME"}
	if dumps {
		questions = append(questions, "DUMP")
	}
	var commands []command
	for _, name := range names {
		for _, question := range questions {
			commands = append(commands, command{question, []any{name}})
		}
	}
	replies, err := s.ask(commands)
	if err != nil {
		return nil, err
	}
	all := State{}
	for i, name := range names {
		e, err := s.head(name, replies[i*len(questions):(i+1)*len(questions)])
		if errors.Is(err, redis.ErrNil) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all[name] = e
	}
	return all, nil
}

func (s *side) head(name string, replies []any) (e Entry, err error) {
	var err1, err2, err3 error
	e.Type, err1 = redis.String(replies[0], nil)
	e.Expires, err2 = redis.Int64(replies[1], nil)
	if len(replies) > 2 {
		e.Dump, err3 = redis.String(replies[2], nil)
	}
	if e.Type == "none" {
		return e, redis.ErrNil
	}
	var refused redis.Error
	if errors.As(err2, &refused) {
		e.Expires, err2 = s.expires(name)
	}
	return e, errors.Join(err1, err2, err3)
}

// values puts the values into entries that have all else.
func (s *side) values(all State) error {
	names := slices.Collect(maps.Keys(all))
	var commands []command
	for _, name := range names {
		r, ok := readers[all[name].Type]
		if !ok {
			return fmt.Errorf("oracle: key %q has type %q", name, all[name].Type)
		}
		commands = append(commands, command{r.command, append([]any{name}, r.args...)})
	}
	replies, err := s.ask(commands)
	if err != nil {
		return err
	}
	for i, name := range names {
		e := all[name]
		e.Value, err = readers[e.Type].read(replies[i])
		switch {
		case errors.Is(err, redis.ErrNil): // it expired while we looked
			delete(all, name)
		case err != nil:
			return err
		default:
			all[name] = e
		}
	}
	return nil
}

// readers say how a value of each type is read.
var readers = map[string]struct {
	command string
	args    []any // after the key
	read    func(reply any) (any, error)
}{
	"hash":   {"HGETALL", nil, func(reply any) (any, error) { return redis.StringMap(reply, nil) }},
	"string": {"GET", nil, func(reply any) (any, error) { return redis.String(reply, nil) }},
	"list":   {"LRANGE", []any{0, -1}, func(reply any) (any, error) { return redis.Strings(reply, nil) }},
	"zset":   {"ZRANGE", []any{0, -1, "WITHSCORES"}, func(reply any) (any, error) { return redis.Float64Map(reply, nil) }},
}

// expires asks servers before 7.0 when a key expires. They report only what is left, so
// they are asked within one millisecond.
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

// now asks for the server's clock, in milliseconds.
func (s *side) now() (int64, error) { return millis(s.conn.Do("TIME")) }

func millis(reply any, err error) (int64, error) {
	parts, err := redis.Int64s(reply, err)
	if err != nil {
		return 0, err
	}
	return parts[0]*1000 + parts[1]/1000, nil
}

// become puts the server into a state that has dumps.
func (s *side) become(all State) error {
	commands := []command{{"FLUSHDB", nil}}
	for name, e := range all {
		commands = append(commands, command{"RESTORE", []any{name, 0, e.Dump}})
		if e.Expires != never {
			commands = append(commands, command{"PEXPIREAT", []any{name, e.Expires}})
		}
	}
	return s.do(commands)
}

// make puts the server into a recorded state, but for the times to live.
func (s *side) make(all State) error {
	commands := []command{{"FLUSHDB", nil}}
	for name, e := range all {
		c, err := e.maker(name)
		if err != nil {
			return err
		}
		commands = append(commands, c)
	}
	return s.do(commands)
}

// maker is the command that makes the key.
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
