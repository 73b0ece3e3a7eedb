package demo

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/rlock"
)

// visit is one stay in the critical section.
type visit struct {
	owner string          // nobody else's, ever
	held  context.Context // ends when the lock is lost
	leave func() error    // returns an error when the lock was lost
}

// over reports whether the lock was lost. It asks the clocks, so it is right even
// when this process stood still for a while.
func (v *visit) over() bool { return v.held.Err() != nil }

// throughLock enters as one should.
func throughLock(lock *rlock.Lock) func(context.Context) (*visit, error) {
	return func(ctx context.Context) (*visit, error) {
		hold, err := lock.Lock(ctx)
		if err != nil {
			return nil, err
		}
		return &visit{
			owner: hold.Owner().String(),
			held:  hold.Context(context.Background()), // a round that began is finished
			leave: hold.Unlock,
		}, nil
	}
}

// throughWall enters without asking anybody: to see that the demo would notice.
func throughWall(id int) func(context.Context) (*visit, error) {
	n := 0
	return func(context.Context) (*visit, error) {
		n++
		return &visit{
			owner: fmt.Sprintf("no-lock-%d:%d", id, n),
			held:  context.Background(),
			leave: func() error { return nil },
		}, nil
	}
}

// book is what the lock protects: a counter, the journal of who counted, and the
// marker of who is inside. It is for one goroutine.
type book struct {
	conn redis.Conn
	keys keys
	id   int
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

// mark sets the marker. It returns the owner of the marker that was there.
func (b *book) mark(owner string) (string, error) {
	_, err := redis.String(b.conn.Do("SET", b.keys.inside, owner, "NX", "EX", keyLife))
	if !errors.Is(err, redis.ErrNil) {
		return "", err
	}
	other, err := redis.String(b.conn.Do("GETSET", b.keys.inside, owner))
	if errors.Is(err, redis.ErrNil) {
		other, err = "somebody who has left", nil
	}
	if err == nil {
		_, err = b.conn.Do("EXPIRE", b.keys.inside, keyLife)
	}
	return other, err
}

// unmark removes the marker if it is owner's. It returns whose it was.
func (b *book) unmark(owner string) (string, error) {
	other, err := redis.String(b.conn.Do("GET", b.keys.inside))
	switch {
	case errors.Is(err, redis.ErrNil):
		return "nobody", nil
	case err == nil && other == owner:
		_, err = b.conn.Do("DEL", b.keys.inside)
	}
	return other, err
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
