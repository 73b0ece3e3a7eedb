package compat

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/test/compat/oracle"
)

// rwPlayer plays the read/write lock: a few owners, each of which may read and write.
type rwPlayer struct {
	*player
	last  *oracle.Step // the release before, for as long as its latch is there
	taken *oracle.Step // the acquire before, whose owner probably holds its lock
	n     int
}

func playReadWrite(p *player) error { return (&rwPlayer{player: p}).play() }

var rwNames = []string{"plain", "{tag}x"}

// play returns the first difference that nothing explains.
func (p *rwPlayer) play() error {
	moves := []func() error{
		p.acquire, p.acquire, p.acquire, p.acquire, p.acquire, p.reenter, p.release, p.release, p.release,
		p.writes, p.writes, p.writes, p.writerLeaves, p.endless, p.late, p.repeat, p.force, p.renew, p.renew, p.pass, p.disturb,
	}
	for range rapid.IntRange(30, 60).Draw(p.rt, "length") {
		if err := rapid.SampledFrom(moves).Draw(p.rt, "move")(); err != nil {
			return err
		}
	}
	return nil
}

func (p *rwPlayer) name() string  { return rapid.SampledFrom(rwNames).Draw(p.rt, "name") }
func (p *rwPlayer) owner() string { return rapid.SampledFrom(playOwners).Draw(p.rt, "owner") }
func (p *rwPlayer) lease() int64  { return rapid.SampledFrom(playLeases).Draw(p.rt, "lease") }

// oneIn is true in one of so many cases.
func (p *rwPlayer) oneIn(of int, what string) bool {
	return rapid.IntRange(1, of).Draw(p.rt, what) == of
}

// forget deletes the latch of the last release, as the client does that has its reply.
func (p *rwPlayer) forget() error {
	if p.last == nil {
		return nil
	}
	_, err := p.twin.Do("DEL", p.last.Latch())
	p.last = nil
	return err
}

// acquire takes a lock, or enters it again as its owner does in the ordinary course: to one
// more than there is.
func (p *rwPlayer) acquire() error {
	s, err := p.newAcquire()
	if err != nil {
		return err
	}
	count, err := p.count(s)
	if err != nil {
		return err
	}
	if count > 0 && !p.oneIn(10, "anew") {
		s.Target = count + 1
	}
	p.taken = &s
	return p.step(s)
}

// writes takes a lock as a writer, whichever owner holds it, or has its writer do what writers
// do: it writes again, reads, or gives one of these back.
func (p *rwPlayer) writes() error {
	name := p.name()
	writer, err := p.writer(name)
	if err != nil {
		return err
	}
	if writer == "" {
		p.taken = &oracle.Step{Op: oracle.WriteAcquire, Names: []string{name}, Owner: p.owner(), Lease: p.lease()}
		return errors.Join(p.forget(), p.step(*p.taken))
	}
	ops := []*oracle.Operation{oracle.WriteFree, oracle.ReadAcquire, oracle.WriteRenew, oracle.WriteAcquire, oracle.ReadFree}
	s := oracle.Step{Op: rapid.SampledFrom(ops).Draw(p.rt, "op"), Names: []string{name}, Owner: writer, Lease: p.lease()}
	count, err := p.count(s)
	if err := errors.Join(err, p.forget()); err != nil {
		return err
	}
	switch {
	case p.oneIn(5, "dies"):
		_, err = p.twin.Do("DEL", s.HoldKey(1), s.HoldKey(2), s.HoldKey(3))
	case p.oneIn(5, "cut"): // by a reader of Redisson's
		_, err = p.twin.Do("PEXPIRE", name, playLeases[0]/2)
	}
	if err != nil {
		return err
	}
	switch s.Op {
	case oracle.WriteRenew:
	case oracle.ReadAcquire, oracle.WriteAcquire:
		s.Target = count + 1
		p.taken = &s
	default:
		p.n++
		s.Target, s.RequestID = max(count-1, 0), fmt.Sprintf("%032x", p.n)
		p.last = &s
	}
	return p.step(s)
}

// writerLeaves has a writer leave that has read inside: alive as a reader or not, and with a
// lease that others have cut or not.
func (p *rwPlayer) writerLeaves() error {
	p.n++
	count := rapid.Int64Range(1, 2).Draw(p.rt, "count")
	s := oracle.Step{
		Op: oracle.WriteFree, Names: []string{p.name()}, Owner: p.owner(), Lease: p.lease(),
		Target: count - 1, RequestID: fmt.Sprintf("%032x", p.n),
	}
	name := s.Names[0]
	commands := [][]any{
		{"DEL", name, s.HoldKey(1), s.HoldKey(2)},
		{"HSET", name, "mode", "write", s.Field(), count, s.Owner, 2},
		{"PEXPIRE", name, p.lease()},
	}
	if !p.oneIn(3, "dead") {
		commands = append(commands, []any{"SET", s.HoldKey(2), "1", "PX", p.lease()})
	}
	if err := errors.Join(p.forget(), p.prepare(commands)); err != nil {
		return err
	}
	return p.releaseAs(s)
}

// endless has a reader come in, or be renewed, where the lock has lost its time to live: beside
// another reader, or inside what it writes.
func (p *rwPlayer) endless() error {
	op := rapid.SampledFrom([]*oracle.Operation{oracle.ReadAcquire, oracle.ReadRenew}).Draw(p.rt, "op")
	s := oracle.Step{Op: op, Names: []string{p.name()}, Owner: playOwners[0], Lease: p.lease()}
	other := s
	other.Owner = playOwners[1]
	name := s.Names[0]
	hash := []any{"HSET", name, "mode", "read", s.Owner, 1, other.Owner, 1}
	if p.oneIn(2, "written") {
		hash = []any{"HSET", name, "mode", "write", s.Owner + ":write", 1, s.Owner, 1}
	}
	commands := [][]any{
		{"DEL", name}, hash,
		{"SET", s.HoldKey(1), "1", "PX", p.lease()}, {"SET", other.HoldKey(1), "1", "PX", p.lease()},
	}
	if err := errors.Join(p.forget(), p.prepare(commands)); err != nil {
		return err
	}
	return p.step(s)
}

// writer asks which owner writes, if one does.
func (p *rwPlayer) writer(name string) (string, error) {
	for _, owner := range playOwners {
		s := oracle.Step{Op: oracle.WriteAcquire, Names: []string{name}, Owner: owner}
		if count, err := p.count(s); err != nil || count > 0 {
			return owner, err
		}
	}
	return "", nil
}

// reenter aims anywhere, as a re-entry does that was held up on its way.
func (p *rwPlayer) reenter() error {
	s, err := p.newAcquire()
	if err != nil {
		return err
	}
	s.Target = rapid.Int64Range(1, 4).Draw(p.rt, "target")
	return p.step(s)
}

func (p *rwPlayer) newAcquire() (oracle.Step, error) {
	ops := []*oracle.Operation{oracle.ReadAcquire, oracle.ReadAcquire, oracle.WriteAcquire}
	s := oracle.Step{Op: rapid.SampledFrom(ops).Draw(p.rt, "op"), Names: []string{p.name()}, Owner: p.owner(), Lease: p.lease()}
	switch rapid.IntRange(0, 19).Draw(p.rt, "how") {
	case 0:
		s.Lease = 0 // the lock expires at once
	case 1, 2, 3, 4, 5, 6, 7, 8:
		p.again(&s)
	}
	return s, p.forget()
}

// count asks how often a step's owner has entered its lock; a key that is no lock has no owner.
func (p *rwPlayer) count(s oracle.Step) (int64, error) {
	count, err := p.twin.Do("HGET", s.Names[0], s.Field())
	if text, ok := count.(string); ok && err == nil {
		return strconv.ParseInt(text, 10, 64)
	}
	return 0, err
}

// again makes a step be about the lock and owner of the last acquire.
func (p *rwPlayer) again(s *oracle.Step) {
	if p.taken != nil {
		s.Names, s.Owner = p.taken.Names, p.taken.Owner
	}
}

// release aims at one less than the count there is, as a hold does that is given back in the
// ordinary course.
func (p *rwPlayer) release() error {
	s, err := p.newRelease()
	if err != nil {
		return err
	}
	count, err := p.count(s)
	if err != nil {
		return err
	}
	s.Target = max(count-1, 0)
	return p.releaseAs(s)
}

// late aims anywhere, as a release does that was held up on its way.
func (p *rwPlayer) late() error {
	s, err := p.newRelease()
	if err != nil {
		return err
	}
	s.Target = rapid.Int64Range(0, 3).Draw(p.rt, "target")
	return p.releaseAs(s)
}

func (p *rwPlayer) newRelease() (oracle.Step, error) {
	p.n++
	s := oracle.Step{
		Op:    rapid.SampledFrom([]*oracle.Operation{oracle.ReadFree, oracle.WriteFree}).Draw(p.rt, "op"),
		Names: []string{p.name()}, Owner: p.owner(), Lease: p.lease(), RequestID: fmt.Sprintf("%032x", p.n),
	}
	if !p.oneIn(4, "any") {
		p.again(&s)
	}
	return s, p.forget()
}

func (p *rwPlayer) releaseAs(s oracle.Step) error {
	p.last = &s
	return p.step(s)
}

// repeat sends the release before again.
func (p *rwPlayer) repeat() error {
	if p.last == nil {
		return p.release()
	}
	s := *p.last
	s.Repeat = true
	return p.step(s)
}

func (p *rwPlayer) force() error {
	op := rapid.SampledFrom([]*oracle.Operation{oracle.ReadForce, oracle.WriteForce}).Draw(p.rt, "op")
	if err := p.forget(); err != nil {
		return err
	}
	return p.step(oracle.Step{Op: op, Names: []string{p.name()}})
}

// renew renews both locks for one owner, held or not, or one of them.
func (p *rwPlayer) renew() error {
	op := rapid.SampledFrom([]*oracle.Operation{oracle.ReadRenew, oracle.ReadRenew, oracle.WriteRenew}).Draw(p.rt, "op")
	names := rapid.SliceOfNDistinct(rapid.SampledFrom(rwNames), 1, len(rwNames), rapid.ID[string]).Draw(p.rt, "names")
	s := oracle.Step{Op: op, Names: names, Owner: p.owner(), Lease: p.lease()}
	if p.taken != nil && !p.oneIn(3, "any") {
		s.Owner = p.taken.Owner
	}
	err := p.forget()
	switch {
	case p.oneIn(8, "spoilt"):
		_, err = p.twin.Do("SET", names[0], "no lock")
	case p.oneIn(8, "over"):
		_, err = p.twin.Do("DEL", s.HoldKey(1), s.HoldKey(2), s.HoldKey(3))
	}
	if err != nil {
		return err
	}
	return p.step(s)
}

// leastLeft is what a key has left at least, after time has passed: less would expire between
// the two runs of a step.
const leastLeft = 5000

// pass lets time pass: every key expires sooner, and keys whose time is over are gone.
func (p *rwPlayer) pass() error {
	passed := rapid.SampledFrom([]int64{7000, 16000, 26000, 85000}).Draw(p.rt, "passed")
	if err := p.forget(); err != nil {
		return err
	}
	names, err := redis.Strings(p.twin.Do("KEYS", "*"))
	if err != nil {
		return err
	}
	for _, name := range names {
		left, err := redis.Int64(p.twin.Do("PTTL", name))
		if err != nil {
			return err
		}
		if left < 0 {
			continue
		}
		if left -= passed; left < leastLeft {
			left = 0
		}
		if _, err := p.twin.Do("PEXPIRE", name, left); err != nil {
			return err
		}
	}
	return nil
}

// disturb changes a key as other programs, or crashes, may: a lock expires, loses its time to
// live, is overwritten, or has a reader that is dead, or one hold less than its count says.
func (p *rwPlayer) disturb() error {
	s := oracle.Step{Names: []string{p.name()}, Owner: p.owner()}
	if p.oneIn(2, "held") {
		p.again(&s)
	}
	name := s.Names[0]
	commands := rapid.SampledFrom([][][]any{
		{{"DEL", name}, {"HSET", name, s.Owner, 1}, {"PEXPIRE", name, 60000}}, // a plain lock
		{{"DEL", s.HoldKey(1)}},
		{{"DEL", s.HoldKey(2)}},
		{{"SET", s.HoldKey(3), "1", "PX", 60000}},
		{{"PEXPIREAT", name, time.Now().Add(-time.Second).UnixMilli()}},
		{{"PERSIST", name}},
		{{"SET", name, "no lock"}},
		{{"RPUSH", name, "no lock"}},
		{{"HSET", name, s.Owner, rapid.IntRange(1, 11).Draw(p.rt, "count")}},
		{{"DEL", name}},
	}).Draw(p.rt, "commands")
	return p.prepare(commands)
}
