package compat

import (
	"fmt"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// plainPlayer plays the plain lock, and the one with tokens.
type plainPlayer struct {
	*player
	last  *oracle.Step // the release before, for as long as its latch is there
	taken *oracle.Step // the acquire before, whose owner probably holds its lock
	n     int
	ops   []*oracle.Operation // those that acquire
}

func playPlain(p *player) error {
	return (&plainPlayer{player: p, ops: []*oracle.Operation{oracle.Acquire}}).play()
}

// playFenced plays the plain lock with tokens: all but the grants is the same.
func playFenced(p *player) error {
	return (&plainPlayer{player: p, ops: []*oracle.Operation{oracle.AcquireToken, oracle.AcquireCounted}}).play()
}

var (
	playNames  = []string{"plain", "{tag}x", "a{b", "замок"}
	playOwners = []string{
		"11111111-1111-1111-1111-111111111111:1",
		"11111111-1111-1111-1111-111111111111:-9223372036854775808",
		"01900000-0000-7000-8000-000000000002:7",
	}
	// None so short that a key expires between the two runs.
	playLeases = []int64{20000, 30000, 90000, 3600000}
)

// play returns the first difference that nothing explains.
func (p *plainPlayer) play() error {
	moves := []func() error{
		p.acquire, p.acquire, p.reenter, p.release, p.release, p.late, p.repeat, p.force, p.renew, p.disturb,
	}
	for range rapid.IntRange(10, 50).Draw(p.rt, "length") {
		if err := rapid.SampledFrom(moves).Draw(p.rt, "move")(); err != nil {
			return err
		}
	}
	return nil
}

func (p *plainPlayer) name() string  { return rapid.SampledFrom(playNames).Draw(p.rt, "name") }
func (p *plainPlayer) owner() string { return rapid.SampledFrom(playOwners).Draw(p.rt, "owner") }
func (p *plainPlayer) lease() int64  { return rapid.SampledFrom(playLeases).Draw(p.rt, "lease") }

// forget deletes the latch of the last release, as the client does that has its
// reply.
func (p *plainPlayer) forget() error {
	if p.last == nil {
		return nil
	}
	_, err := p.twin.Do("DEL", codec.LatchKey(p.last.Names[0], p.last.RequestID))
	p.last = nil
	return err
}

// acquire takes a lock, or enters it again as its owner does in the ordinary
// course: to one more than there is.
func (p *plainPlayer) acquire() error {
	s, err := p.newAcquire()
	if err != nil {
		return err
	}
	count, err := p.count(s)
	if err != nil {
		return err
	}
	if count > 0 && rapid.IntRange(0, 9).Draw(p.rt, "anew") > 0 {
		s.Target = count + 1
	}
	p.taken = &s
	return p.step(s)
}

// reenter aims anywhere, as a re-entry does that was held up on its way.
func (p *plainPlayer) reenter() error {
	s, err := p.newAcquire()
	if err != nil {
		return err
	}
	s.Target = rapid.Int64Range(1, 4).Draw(p.rt, "target")
	return p.step(s)
}

func (p *plainPlayer) newAcquire() (oracle.Step, error) {
	op := rapid.SampledFrom(p.ops).Draw(p.rt, "op")
	s := oracle.Step{Op: op, Names: []string{p.name()}, Owner: p.owner(), Lease: p.lease()}
	switch rapid.IntRange(0, 9).Draw(p.rt, "how") {
	case 0:
		s.Lease = 0 // deletes the key again
	case 1, 2, 3, 4:
		p.again(&s) // enters again, in all likelihood
	}
	return s, p.forget()
}

// count asks how often a step's owner has entered its lock; a key that is no lock
// has no owner.
func (p *plainPlayer) count(s oracle.Step) (int64, error) {
	count, err := p.twin.Do("HGET", s.Names[0], s.Owner)
	if text, ok := count.(string); ok && err == nil {
		return strconv.ParseInt(text, 10, 64)
	}
	return 0, err
}

// again makes a step be about the lock and owner of the last acquire.
func (p *plainPlayer) again(s *oracle.Step) {
	if p.taken != nil {
		s.Names, s.Owner = p.taken.Names, p.taken.Owner
	}
}

// release aims at one less than the count there is, as a hold does that is given
// back in the ordinary course.
func (p *plainPlayer) release() error {
	if err := p.forget(); err != nil {
		return err
	}
	s := p.newRelease()
	count, err := p.count(s)
	if err != nil {
		return err
	}
	s.Target = max(count-1, 0)
	return p.releaseAs(s)
}

// late aims anywhere, as a release does that was held up on its way.
func (p *plainPlayer) late() error {
	if err := p.forget(); err != nil {
		return err
	}
	s := p.newRelease()
	s.Target = rapid.Int64Range(0, 3).Draw(p.rt, "target")
	return p.releaseAs(s)
}

// repeat sends the release before again.
func (p *plainPlayer) repeat() error {
	if p.last == nil {
		return p.release()
	}
	s := *p.last
	s.Repeat = true
	return p.step(s)
}

func (p *plainPlayer) newRelease() oracle.Step {
	p.n++
	s := oracle.Step{
		Op: oracle.Free, Names: []string{p.name()}, Owner: p.owner(), Lease: p.lease(),
		RequestID: fmt.Sprintf("%032x", p.n),
	}
	if rapid.IntRange(0, 3).Draw(p.rt, "whose") > 0 {
		p.again(&s)
	}
	return s
}

func (p *plainPlayer) releaseAs(s oracle.Step) error {
	p.last = &s
	return p.step(s)
}

func (p *plainPlayer) force() error {
	if err := p.forget(); err != nil {
		return err
	}
	return p.step(oracle.Step{Op: oracle.Force, Names: []string{p.name()}})
}

// renew renews several locks for one owner, held or not.
func (p *plainPlayer) renew() error {
	if err := p.forget(); err != nil {
		return err
	}
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(playNames), 1, len(playNames), rapid.ID[string]).Draw(p.rt, "names")
	return p.step(oracle.Step{Op: oracle.Renew, Names: names, Owner: p.owner(), Lease: p.lease()})
}

// disturb changes a key as other programs may: it expires, loses its time to live, is
// overwritten, or has a field of another owner.
func (p *plainPlayer) disturb() error {
	name := p.name()
	if p.taken != nil && rapid.Bool().Draw(p.rt, "held") {
		name = p.taken.Names[0]
	}
	past := time.Now().Add(-time.Second).UnixMilli()
	commands := [][]any{
		{"PEXPIREAT", name, past},
		{"PERSIST", name},
		{"SET", name, "no lock"},
		{"RPUSH", name, "no lock"},
		{"HSET", name, p.owner(), rapid.IntRange(1, 11).Draw(p.rt, "count")},
		{"DEL", name},
	}
	if p.ops[0] == oracle.AcquireToken {
		counter := codec.TokenKey(name)
		commands = append(commands, []any{"DEL", counter}, []any{"SET", counter, "no number"},
			[]any{"SET", counter, "9007199254740991"}, []any{"SET", counter, "9223372036854775806"})
	}
	c := rapid.SampledFrom(commands).Draw(p.rt, "command")
	command, _ := c[0].(string)
	_, err := p.twin.Do(command, c[1:]...)
	return err
}
