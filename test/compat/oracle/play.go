package oracle

import (
	"errors"
	"time"

	"github.com/gomodule/redigo/redis"
)

// Twin is a pair of servers that are in the same state. It is not safe for concurrent use.
type Twin struct {
	theirs, ours *side
}

// NewTwin connects to two servers, which nothing else may use.
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

// Reset deletes all keys on both servers.
func (t *Twin) Reset() error {
	return t.theirs.become(nil)
}

// Do runs a command on Redisson's side.
func (t *Twin) Do(command string, args ...any) (any, error) {
	return normal(t.theirs.conn.Do(command, args...))
}

// Alone plays a step on Redisson's side only.
func (t *Twin) Alone(theirs *Theirs, step Step) error {
	_, err := t.theirs.act(theirs.requests(step), theirs.isList(step))
	return err
}

// Play copies the state of Redisson's side to our side, plays the step on both sides, and compares them.
func (t *Twin) Play(theirs *Theirs, ours Ours, step Step) (*Outcome, error) {
	prior, err := t.theirs.state()
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

// Stage plays recorded cases within one millisecond of the server's clock. It is not safe for concurrent use.
type Stage struct{ side *side }

// NewStage connects to a server, which nothing else may use.
func NewStage(dial func() (redis.Conn, error)) (*Stage, error) {
	s, err := newSide(dial)
	return &Stage{s}, err
}

// Close closes the connections.
func (s *Stage) Close() error { return s.side.close() }

// Record plays cases with Redisson's scripts and returns the results.
func (s *Stage) Record(theirs *Theirs, cases []*Case) ([]Result, error) {
	var all []Result
	for _, c := range cases {
		m, err := s.side.moment(c.Before, theirs.requests(c.Step))
		if err != nil {
			return nil, err
		}
		all = append(all, Result{
			Redisson: []string{theirs.Release.String()},
			Calls:    theirs.calls(c.Step),
			Reply:    Reply{oneOf(m.replies, theirs.isList(c.Step))},
			After:    m.seen.After.after(-m.at),
			Messages: m.seen.Messages,
		})
	}
	return all, nil
}

// Replay plays a vector with our script and compares the results.
func (s *Stage) Replay(ours Ours, v Vector) (*Outcome, error) {
	m, err := s.side.moment(v.Before, []request{ours.request(v.Step)})
	if err != nil {
		return nil, err
	}
	m.seen.Reply = m.replies[0]
	o := &Outcome{
		Step:   v.Step,
		Shared: ours.Shared,
		Prior:  v.Before.after(m.at),
		At:     m.at,
		Theirs: Seen{v.Reply.Value, v.After.after(m.at), v.Messages},
		Ours:   m.seen,
	}
	o.Diffs = o.compare()
	return o, nil
}

// maxTries allows for a busy machine.
const maxTries = 5000

var errNoMoment = errors.New("oracle: the server is too slow to run a script within one millisecond of its clock")

type moment struct {
	at      int64 // milliseconds since 1970
	replies []any
	seen    Seen
}

func (s *side) moment(before State, all []request) (*moment, error) {
	for range maxTries {
		m, err := s.tryMoment(before, all)
		if err != nil {
			return nil, err
		}
		if m != nil {
			m.seen.After, err = s.state()
			return m, err
		}
	}
	return nil, errNoMoment
}

// tryMoment runs requests and reads the clock in one transaction. It returns nil if the clock has advanced.
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
