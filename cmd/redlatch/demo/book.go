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

// book is what the plain lock protects: a counter, the journal of who counted, and
// the marker of who is inside. It is for one goroutine.
type book struct {
	marker
	keys keys
	id   int
}

func newBook(c redis.Conn, prefix string, id int) *book {
	k := keysOf(prefix)
	return &book{marker: marker{c, k.inside}, keys: k, id: id}
}

// read returns the counter.
func (b *book) read() (int64, error) {
	n, err := redis.Int64(b.conn.Do("GET", b.keys.counter))
	if errors.Is(err, redis.ErrNil) {
		return 0, nil
	}
	return n, err
}

// write sets the counter and journals the round, both or neither.
func (b *book) write(n int64) error {
	// What Send cannot send, EXEC below reports.
	_ = b.conn.Send("MULTI")
	_ = b.conn.Send("SET", b.keys.counter, n, "EX", keyLife)
	_ = b.conn.Send("HINCRBY", b.keys.journal, b.id, 1)
	_ = b.conn.Send("EXPIRE", b.keys.journal, keyLife)
	_, err := b.conn.Do("EXEC")
	return err
}

// totals returns the counter, and the journal by worker.
func (b *book) totals() (int64, map[int]int64, error) {
	n, err := b.read()
	if err != nil {
		return 0, nil, err
	}
	fields, err := redis.Int64Map(b.conn.Do("HGETALL", b.keys.journal))
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
func (b *book) remove() error {
	_, err := b.conn.Do("DEL", b.keys.lock, b.keys.counter, b.keys.journal, b.keys.inside)
	return err
}
