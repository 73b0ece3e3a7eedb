package oracle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/gomodule/redigo/redis"
)

// readAll returns all keys: name, type, when it expires (an error before 7.0), value, and dump if
// ARGV[1] is 1.
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

// readKeys is the command that reads all keys, with their dumps if they are wanted. It is one
// script: round trips are what takes the time of the tests.
func readKeys(dumps bool) command { return command{"EVAL", []any{readAll, 0, dumps}} }

func (s *side) state(dumps bool) (State, error) {
	c := readKeys(dumps)
	reply, err := s.conn.Do(c.name, c.args...)
	if err != nil {
		return nil, err
	}
	return s.understand(reply)
}

// understand makes a state of the reply to readKeys.
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

// entry understands what readAll returned of a key.
func (s *side) entry(name string, parts []any) (e Entry, err error) {
	var err1, err2, err3, err4 error
	e.Type, err1 = redis.String(parts[0], nil)
	e.Expires, err2 = redis.Int64(parts[1], nil)
	e.Value, err3 = valueOf(e.Type, parts[2])
	if parts[3] != nil {
		e.Dump, err4 = redis.String(parts[3], nil)
	}
	var refused redis.Error
	if errors.As(err2, &refused) {
		e.Expires, err2 = s.expires(name)
	}
	return e, errors.Join(err1, err2, err3, err4)
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
