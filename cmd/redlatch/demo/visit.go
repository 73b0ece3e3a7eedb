package demo

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/rlock"
)

// visit is one stay in the critical section.
type visit struct {
	owner string          // the hold's, a # and a number: an owner of a fair lock may come again
	held  context.Context // ends when the lock is lost
	leave func() error    // returns an error when the lock was lost
}

// isLost reports whether the lock was lost. It asks the clocks, so it is right even
// when this process stood still for a while.
func (v *visit) isLost() bool { return v.held.Err() != nil }

// withLock enters as one should. The number of a visit is the next of n, which all workers of
// a process share, as they share its owners.
func withLock(lock *rlock.Lock, n *atomic.Int64) func(context.Context) (*visit, error) {
	return func(ctx context.Context) (*visit, error) {
		hold, err := lock.Lock(ctx)
		if err != nil {
			return nil, err
		}
		return &visit{
			owner: fmt.Sprintf("%s#%d", hold.Owner(), n.Add(1)),
			held:  hold.Context(context.Background()), // a round that began is finished
			leave: hold.Unlock,
		}, nil
	}
}

// withoutLock enters without the lock, to test that the demo notices.
func withoutLock(id string) func(context.Context) (*visit, error) {
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

// queuedAs returns the owner of a visit as it stands in the queue of the lock.
func queuedAs(owner string) string {
	owner, _, _ = strings.Cut(owner, "#")
	return owner
}

// marker is a key on the server with the owner inside. It is for one goroutine.
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
		other, err = "an owner that has left", nil
	}
	if err == nil {
		_, err = m.conn.Do("EXPIRE", m.key, keyLife)
	}
	return other, err
}

// unmark removes the marker if it is owner's. It returns the owner that it had.
func (m *marker) unmark(owner string) (string, error) {
	other, err := redis.String(m.conn.Do("GET", m.key))
	switch {
	case errors.Is(err, redis.ErrNil):
		return "none", nil
	case err == nil && other == owner:
		_, err = m.conn.Do("DEL", m.key)
	}
	return other, err
}

// collisions are the markers that were found where none should be.
type collisions struct {
	found   []string
	excused map[string]bool // owners whose marker may stay behind
}

// add enters a marker that was found.
func (m *collisions) add(owner string) { m.found = append(m.found, owner) }

// excuse records that owner could not remove its marker.
func (m *collisions) excuse(owner string) {
	if m.excused == nil {
		m.excused = map[string]bool{}
	}
	m.excused[owner] = true
}

// count returns how often two were inside.
func (m *collisions) count() int {
	n := 0
	for _, owner := range m.found {
		if !m.excused[owner] {
			n++
		}
	}
	return n
}
