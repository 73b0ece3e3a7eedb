package oracle

import (
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Twin is two servers of one make that are kept in the same state. It is for one
// goroutine.
type Twin struct {
	theirs, ours *side
}

// NewTwin takes two servers that nothing else uses, by how to connect to them.
func NewTwin(theirs, ours func() (redis.Conn, error)) (*Twin, error) {
	a, err := newSide(theirs)
	if err != nil {
		return nil, err
	}
	b, err := newSide(ours)
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return &Twin{theirs: a, ours: b}, nil
}

// Close closes the connections.
func (t *Twin) Close() error { return errors.Join(t.theirs.close(), t.ours.close()) }

// Reset begins anew, with no key on either server.
func (t *Twin) Reset() error {
	return t.theirs.become(nil)
}

// Do runs a plain command on Redisson's side, to bring about a state.
func (t *Twin) Do(command string, args ...any) (any, error) {
	return normal(t.theirs.conn.Do(command, args...))
}

// Alone takes a step on Redisson's side, to bring about a state.
func (t *Twin) Alone(theirs *Theirs, step Step) error {
	_, err := t.theirs.act(theirs.requests(step), theirs.isList(step))
	return err
}

// Play puts our side into the state of Redisson's, takes the step on both and
// compares.
func (t *Twin) Play(theirs *Theirs, ours Ours, step Step) (*Outcome, error) {
	prior, err := t.theirs.state(true)
	if err != nil {
		return nil, err
	}
	if err := t.ours.become(prior); err != nil {
		return nil, err
	}
	began := time.Now()
	o := &Outcome{Step: step, Shared: ours.Shared, Prior: prior, At: began.UnixMilli()}
	var err1, err2 error
	o.Theirs, err1 = t.theirs.act(theirs.requests(step), theirs.isList(step))
	o.Ours, err2 = t.ours.act([]request{ours.request(step)}, false)
	o.Elapsed = time.Since(began).Milliseconds() + 2
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	o.Diffs = o.compare()
	return o, nil
}
