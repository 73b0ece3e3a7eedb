package demo

import (
	"context"
	"errors"
	"fmt"

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
func throughWall(id string) func(context.Context) (*visit, error) {
	n := 0
	return func(context.Context) (*visit, error) {
		n++
		return &visit{
			owner: fmt.Sprintf("no-lock-%s:%d", id, n),
			held:  context.Background(),
			leave: func() error { return nil },
		}, nil
	}
}

// marker says on the server who is inside. It is for one goroutine.
type marker struct {
	conn redis.Conn
	key  string
}

// mark sets the marker. It returns the owner of the marker that was there.
func (m *marker) mark(owner string) (string, error) {
	_, err := redis.String(m.conn.Do("SET", m.key, owner, "NX", "EX", keyLife))
	if !errors.Is(err, redis.ErrNil) {
		return "", err
	}
	other, err := redis.String(m.conn.Do("GETSET", m.key, owner))
	if errors.Is(err, redis.ErrNil) {
		other, err = "somebody who has left", nil
	}
	if err == nil {
		_, err = m.conn.Do("EXPIRE", m.key, keyLife)
	}
	return other, err
}

// unmark removes the marker if it is owner's. It returns whose it was.
func (m *marker) unmark(owner string) (string, error) {
	other, err := redis.String(m.conn.Do("GET", m.key))
	switch {
	case errors.Is(err, redis.ErrNil):
		return "nobody", nil
	case err == nil && other == owner:
		_, err = m.conn.Do("DEL", m.key)
	}
	return other, err
}

// meetings are the markers that were found where none should be.
type meetings struct {
	found   []string
	excused map[string]bool // owners whose marker may stay behind
}

// find enters a marker that was found.
func (m *meetings) find(owner string) { m.found = append(m.found, owner) }

// excuse says that owner could not take its marker away.
func (m *meetings) excuse(owner string) {
	if m.excused == nil {
		m.excused = map[string]bool{}
	}
	m.excused[owner] = true
}

// count returns how often two were inside.
func (m *meetings) count() int {
	n := 0
	for _, owner := range m.found {
		if !m.excused[owner] {
			n++
		}
	}
	return n
}
