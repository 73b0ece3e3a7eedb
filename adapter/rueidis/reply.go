package rueidis

import (
	"errors"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
)

func received(r rueidis.RedisResult) (any, error) {
	if err := r.NonRedisError(); err != nil {
		return nil, err
	}
	m, err := r.ToMessage()
	if err != nil && !rueidis.IsRedisNil(err) {
		return nil, refusal(err)
	}
	return plain(&m), nil
}

func plain(m *rueidis.RedisMessage) any {
	switch {
	case m.IsNil():
		return nil
	case m.IsInt64():
		n, _ := m.ToInt64()
		return n
	case m.IsArray():
		elements, _ := m.ToArray()
		return array(elements)
	case m.IsMap():
		return pairs(m)
	case m.IsBool():
		return truth(m)
	}
	if err := m.Error(); err != nil {
		return refusal(err)
	}
	text, _ := m.ToString()
	if isVerbatim(m) {
		text = strings.TrimPrefix(text, "txt:")
	}
	return []byte(text)
}

func isVerbatim(m *rueidis.RedisMessage) bool {
	return !m.IsString() && !m.IsNil() && !m.IsInt64() && !m.IsArray() && !m.IsMap() &&
		!m.IsBool() && !m.IsFloat64() && m.Error() == nil
}

func array(elements []rueidis.RedisMessage) []any {
	all := make([]any, len(elements))
	for i := range elements {
		all[i] = plain(&elements[i])
	}
	return all
}

func pairs(m *rueidis.RedisMessage) []any {
	fields, _ := m.ToMap()
	all := make([]any, 0, 2*len(fields))
	for name, value := range fields {
		all = append(all, []byte(name), plain(&value))
	}
	return all
}

func truth(m *rueidis.RedisMessage) any {
	if is, _ := m.ToBool(); is {
		return int64(1)
	}
	return int64(0)
}

// refusal converts err to a redis.Error. It restores the code ERR, which rueidis drops.
func refusal(err error) redis.Error {
	text := err.Error()
	code, _, _ := strings.Cut(text, " ")
	if code == "" || strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		text = "ERR " + text
	}
	return redis.Error(text)
}

func isRefusal(err error) bool {
	var sent redis.Error
	return errors.As(err, &sent)
}

func texts(args []any) []string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = text(arg)
	}
	return words
}

func text(arg any) string {
	switch a := arg.(type) {
	case string:
		return a
	case []byte:
		return string(a)
	case int:
		return strconv.Itoa(a)
	case int64:
		return strconv.FormatInt(a, 10)
	}
	panic("rueidis: argument type not permitted in transport.Call")
}
