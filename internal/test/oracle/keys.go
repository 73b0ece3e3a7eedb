package oracle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/gomodule/redigo/redis"
)

// state reads all keys, with their dumps if they are wanted.
func (s *side) state(dumps bool) (State, error) {
	names, err := redis.Strings(s.conn.Do("KEYS", "*"))
	if err != nil {
		return nil, err
	}
	all := State{}
	for _, name := range names {
		e, err := s.entry(name, dumps)
		if errors.Is(err, redis.ErrNil) {
			continue // it expired while we looked
		}
		if err != nil {
			return nil, err
		}
		all[name] = e
	}
	return all, nil
}

func (s *side) entry(name string, dumps bool) (e Entry, err error) {
	questions := []string{"TYPE", "PEXPIRETIME"}
	if dumps {
		questions = append(questions, "DUMP")
	}
	for _, question := range questions {
		if err := s.conn.Send(question, name); err != nil {
			return e, err
		}
	}
	if err := s.conn.Flush(); err != nil {
		return e, err
	}
	var err1, err2, err3 error
	e.Type, err1 = redis.String(s.conn.Receive())
	e.Expires, err2 = redis.Int64(s.conn.Receive())
	if dumps {
		e.Dump, err3 = redis.String(s.conn.Receive())
	}
	var refused redis.Error
	if errors.As(err2, &refused) {
		e.Expires, err2 = s.expires(name)
	}
	if err := errors.Join(err1, err2, err3); err != nil {
		return e, err
	}
	e.Value, err = s.value(e.Type, name)
	return e, err
}

func (s *side) value(kind, name string) (any, error) {
	switch kind {
	case "hash":
		return redis.StringMap(s.conn.Do("HGETALL", name))
	case "string":
		return redis.String(s.conn.Do("GET", name))
	case "list":
		return redis.Strings(s.conn.Do("LRANGE", name, 0, -1))
	case "zset":
		return redis.Float64Map(s.conn.Do("ZRANGE", name, 0, -1, "WITHSCORES"))
	case "none":
		return nil, redis.ErrNil
	}
	return nil, fmt.Errorf("oracle: key %q has type %q", name, kind)
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
	if _, err := s.conn.Do("FLUSHDB"); err != nil {
		return err
	}
	for name, e := range all {
		if _, err := s.conn.Do("RESTORE", name, 0, e.Dump); err != nil {
			return err
		}
		if e.Expires == never {
			continue
		}
		if _, err := s.conn.Do("PEXPIREAT", name, e.Expires); err != nil {
			return err
		}
	}
	return nil
}

// make puts the server into a recorded state, but for the times to live.
func (s *side) make(all State) error {
	if _, err := s.conn.Do("FLUSHDB"); err != nil {
		return err
	}
	for name, e := range all {
		command, args, err := e.maker(name)
		if err != nil {
			return err
		}
		if _, err := s.conn.Do(command, args...); err != nil {
			return err
		}
	}
	return nil
}

// maker is the command that makes the key.
func (e Entry) maker(name string) (command string, args []any, err error) {
	args = []any{name}
	switch v := e.Value.(type) {
	case map[string]string:
		for _, field := range slices.Sorted(maps.Keys(v)) {
			args = append(args, field, v[field])
		}
		return "HSET", args, nil
	case string:
		return "SET", append(args, v), nil
	case []string:
		for _, item := range v {
			args = append(args, item)
		}
		return "RPUSH", args, nil
	case map[string]float64:
		for _, member := range slices.Sorted(maps.Keys(v)) {
			args = append(args, strconv.FormatFloat(v[member], 'f', -1, 64), member)
		}
		return "ZADD", args, nil
	}
	return "", nil, fmt.Errorf("oracle: key %q is a %T", name, e.Value)
}
