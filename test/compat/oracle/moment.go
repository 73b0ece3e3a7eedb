package oracle

import (
	"errors"

	"github.com/gomodule/redigo/redis"
)

// maxTries bounds how often a moment is tried. On a busy machine one in a few
// dozen succeeds.
const maxTries = 5000

// errNoMoment says that a server never did it within a millisecond.
var errNoMoment = errors.New("oracle: the server is too slow to run a script within one millisecond of its clock")

// moment is what requests did to a recorded state, all within one millisecond of
// the server's clock.
type moment struct {
	at      int64 // when, in milliseconds since 1970
	replies []any
	seen    Seen // but for the reply
}

// moment brings about a state and runs requests, as often as it takes to do that
// in one millisecond.
func (s *side) moment(before State, all []request) (*moment, error) {
	for range maxTries {
		m, err := s.tryMoment(before, all)
		if err != nil {
			return nil, err
		}
		if m != nil {
			m.seen.After, err = s.state(false)
			return m, err
		}
	}
	return nil, errNoMoment
}

// tryMoment sets the times to live, runs the requests and asks for the clock
// again, all in one transaction. It returns none if the clock had moved.
func (s *side) tryMoment(before State, all []request) (*moment, error) {
	if err := s.make(before); err != nil {
		return nil, err
	}
	at, err := s.now()
	if err != nil {
		return nil, err
	}
	if err := s.send(before.after(at), all); err != nil {
		return nil, err
	}
	replies, err := redis.Values(s.conn.Do("EXEC"))
	if err != nil {
		return nil, err
	}
	end := len(replies) - 1
	m := &moment{at: at}
	for _, reply := range replies[end-len(all) : end] {
		reply, err := normal(reply, nil)
		if err != nil {
			return nil, err
		}
		m.replies = append(m.replies, reply)
	}
	if m.seen.Messages, err = s.messages(); err != nil {
		return nil, err
	}
	if after, err := millis(replies[end], nil); err != nil || after != at {
		return nil, err
	}
	return m, nil
}

// send queues a transaction: times to live, requests, the clock.
func (s *side) send(before State, all []request) error {
	errs := []error{s.conn.Send("MULTI")}
	for name, e := range before {
		if e.Expires != never {
			errs = append(errs, s.conn.Send("PEXPIREAT", name, e.Expires))
		}
	}
	for _, r := range all {
		c := r.eval()
		errs = append(errs, s.conn.Send(c.name, c.args...))
	}
	return errors.Join(append(errs, s.conn.Send("TIME"))...)
}
