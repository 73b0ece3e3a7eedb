package oracle

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Entry is a key as it stands on a server.
type Entry struct {
	// Type is the value's type, as TYPE says.
	Type string
	// Dump is the value, with nothing of time in it.
	Dump string
	// Expires is when the key expires, in milliseconds since 1970, −1 for never.
	Expires int64
}

// State is all keys of a server.
type State map[string]Entry

// Failure is an error reply. Only its code counts: the rest names the script.
type Failure string

// side is one of the two servers. Nobody else uses it.
type side struct {
	conn     redis.Conn
	listener redis.PubSubConn // hears every channel
	marks    int
}

func newSide(dial func() (redis.Conn, error)) (*side, error) {
	conn, err := dial()
	if err != nil {
		return nil, err
	}
	ears, err := dial()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	s := &side{conn: conn, listener: redis.PubSubConn{Conn: ears}}
	if err := s.listener.PSubscribe("*"); err != nil {
		return nil, errors.Join(err, s.close())
	}
	if err, failed := s.listener.ReceiveWithTimeout(lineTimeout).(error); failed {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *side) close() error { return errors.Join(s.conn.Close(), s.listener.Conn.Close()) }

// run runs scripts in turn. The reply is that of the one script, or the list of
// them if there were more or the caller wants a list.
func (s *side) run(all []Request, list bool) (any, error) {
	var replies []any
	for _, r := range all {
		args := []any{r.Script, len(r.Keys)}
		for _, key := range r.Keys {
			args = append(args, key)
		}
		reply, err := s.conn.Do("EVAL", append(args, r.Argv...)...)
		if reply, err = normal(reply, err); err != nil {
			return nil, err
		}
		replies = append(replies, reply)
	}
	if list {
		return replies, nil
	}
	return replies[0], nil
}

// normal makes error replies values and bulk strings texts.
func normal(reply any, err error) (any, error) {
	var refused redis.Error
	if errors.As(err, &refused) {
		code, _, _ := strings.Cut(refused.Error(), " ")
		return Failure(code), nil
	}
	if text, ok := reply.([]byte); ok {
		return string(text), err
	}
	return reply, err
}

// state reads all keys.
func (s *side) state() (State, error) {
	names, err := redis.Strings(s.conn.Do("KEYS", "*"))
	if err != nil {
		return nil, err
	}
	all := State{}
	for _, name := range names {
		e, err := s.entry(name)
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

func (s *side) entry(name string) (Entry, error) {
	var e Entry
	for _, command := range []string{"TYPE", "DUMP", "PEXPIRETIME"} {
		if err := s.conn.Send(command, name); err != nil {
			return e, err
		}
	}
	if err := s.conn.Flush(); err != nil {
		return e, err
	}
	kind, err1 := redis.String(s.conn.Receive())
	dump, err2 := redis.String(s.conn.Receive())
	expires, err3 := redis.Int64(s.conn.Receive())
	return Entry{kind, dump, expires}, errors.Join(err1, err2, err3)
}

// become puts the server into a state.
func (s *side) become(all State) error {
	if _, err := s.conn.Do("FLUSHDB"); err != nil {
		return err
	}
	for name, e := range all {
		if _, err := s.conn.Do("RESTORE", name, 0, e.Dump); err != nil {
			return err
		}
		if e.Expires < 0 {
			continue
		}
		if _, err := s.conn.Do("PEXPIREAT", name, e.Expires); err != nil {
			return err
		}
	}
	return nil
}

// messages returns what was published since the last time.
func (s *side) messages() ([]string, error) {
	s.marks++
	mark := fmt.Sprintf("mark-%d", s.marks)
	if _, err := s.conn.Do("PUBLISH", "the end", mark); err != nil {
		return nil, err
	}
	var got []string
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

// counts reads the count of a step's owner in each of its locks.
func (s *side) counts(step Step) (map[string]int64, error) {
	all := map[string]int64{}
	for _, name := range step.Names {
		count, err := redis.Int64(s.conn.Do("HGET", name, step.Owner))
		var refused redis.Error
		switch {
		case errors.As(err, &refused):
			continue // another type
		case err != nil && !errors.Is(err, redis.ErrNil):
			return nil, err
		}
		all[name] = count
	}
	return all, nil
}
