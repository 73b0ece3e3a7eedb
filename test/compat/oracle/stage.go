package oracle

import "github.com/gomodule/redigo/redis"

// Stage is a server on which recorded cases are played, each within one
// millisecond of the server's clock, so that no time may differ. It is for one
// goroutine.
type Stage struct{ side *side }

// NewStage takes a server that nothing else uses, by how to connect to it. One with the
// clock of a testing/synctest bubble will do, too.
func NewStage(dial func() (redis.Conn, error)) (*Stage, error) {
	s, err := newSide(dial)
	return &Stage{s}, err
}

// Close closes the connections.
func (s *Stage) Close() error { return s.side.close() }

// Record plays the cases as a live Redisson's scripts do them.
func (s *Stage) Record(theirs *Theirs, kind *Kind) ([]Vector, error) {
	var all []Vector
	for _, c := range kind.CasesOf(theirs.Release) {
		m, err := s.side.moment(c.Before, theirs.requests(c.Step))
		if err != nil {
			return nil, err
		}
		all = append(all, Vector{
			Operation: c.Step.Op.Name,
			Does:      c.Does,
			Redisson:  []string{theirs.Release.String()},
			Step:      c.Step,
			Calls:     theirs.calls(c.Step),
			Before:    c.Before,
			Reply:     Reply{oneOf(m.replies, theirs.isList(c.Step))},
			After:     m.seen.After.after(-m.at),
			Messages:  m.seen.Messages,
			Diverges:  append([]string{}, c.Meant...),
		})
	}
	return all, nil
}

// Replay plays a vector as we do it and compares.
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
