package demo

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/gomodule/redigo/redis"
)

// keys are the names of a run on the server.
type keys struct{ lock, counter, journal, inside string }

func keysOf(prefix string) keys {
	return keys{
		lock:    prefix + ":lock",
		counter: prefix + ":counter",
		journal: prefix + ":journal",
		inside:  prefix + ":inside",
	}
}

// counterState is what the plain lock protects: a counter, the journal of rounds by worker,
// and the marker of the owner inside. It is for one goroutine.
type counterState struct {
	marker
	keys keys
	id   int
}

func newCounterState(c redis.Conn, prefix string, id int) *counterState {
	k := keysOf(prefix)
	return &counterState{marker: marker{c, k.inside}, keys: k, id: id}
}

// read returns the counter.
func (s *counterState) read() (int64, error) {
	n, err := redis.Int64(s.conn.Do("GET", s.keys.counter))
	if errors.Is(err, redis.ErrNil) {
		return 0, nil
	}
	return n, err
}

// write sets the counter and journals the round, both or neither.
func (s *counterState) write(n int64) error {
	// What Send cannot send, EXEC below reports.
	_ = s.conn.Send("MULTI")
	_ = s.conn.Send("SET", s.keys.counter, n, "EX", keyLife)
	_ = s.conn.Send("HINCRBY", s.keys.journal, s.id, 1)
	_ = s.conn.Send("EXPIRE", s.keys.journal, keyLife)
	_, err := s.conn.Do("EXEC")
	return err
}

// totals returns the counter, and the journal by worker.
func (s *counterState) totals() (int64, map[int]int64, error) {
	n, err := s.read()
	if err != nil {
		return 0, nil, err
	}
	fields, err := redis.Int64Map(s.conn.Do("HGETALL", s.keys.journal))
	if err != nil {
		return 0, nil, err
	}
	journal := map[int]int64{}
	for field, rounds := range fields {
		id, err := strconv.Atoi(field)
		if err != nil {
			return 0, nil, fmt.Errorf("a worker called %q is in the journal", field)
		}
		journal[id] = rounds
	}
	return n, journal, nil
}

// remove deletes everything that the run left on the server.
func (s *counterState) remove() error {
	_, err := s.conn.Do("DEL", s.keys.lock, s.keys.counter, s.keys.journal, s.keys.inside)
	return err
}
