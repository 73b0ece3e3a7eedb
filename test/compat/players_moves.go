package compat

import (
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

func fairMoves(p *lockPlayer) []func() error {
	return []func() error{p.passTime, p.passTime, p.passTime, p.turn, p.giveUp, p.giveUp, p.follow}
}

// passTime advances the clock by a short time, to the deadline of a first waiter, or to just before that deadline.
func (p *lockPlayer) passTime() error {
	switch rapid.IntRange(0, 3).Draw(p.rt, "time") {
	case 0:
		p.now++
		return nil
	case 1:
		p.now += rapid.Int64Range(1000, 90000).Draw(p.rt, "ms")
		return nil
	}
	name := p.name()
	head, ok, err := p.waiter(name, 0)
	if !ok || err != nil {
		return err
	}
	score, err := p.twin.Do("ZSCORE", codec.TimeoutKey(name), head)
	if text, ok := score.(string); ok && err == nil {
		deadline, err := strconv.ParseFloat(text, 64)
		if deadline > 1e12 {
			p.now = int64(deadline) - rapid.Int64Range(0, 1).Draw(p.rt, "before")
		}
		return err
	}
	return err
}

// waiter returns the first waiter in the queue, or the last one if place is -1.
func (p *lockPlayer) waiter(name string, place int) (owner string, ok bool, err error) {
	reply, err := p.twin.Do("LINDEX", codec.QueueKey(name), place)
	owner, ok = reply.(string)
	return owner, ok, err
}

func (p *lockPlayer) turn() error {
	s, err := p.new(p.enters)
	head, ok, err2 := p.waiter(s.Names[0], 0)
	if err := errors.Join(err, err2); !ok || err != nil {
		return err
	}
	s.Owner = head
	if err := p.prepare([][]any{{"DEL", s.Names[0]}}); err != nil {
		return err
	}
	return p.step(s)
}

// giveUp removes an owner, usually the last one, from the queue. The lock may have expired.
func (p *lockPlayer) giveUp() error {
	s, err := p.new(ops(oracle.FairGiveUp))
	last, ok, err2 := p.waiter(s.Names[0], -1)
	if ok && !p.oneIn(4, "any") {
		s.Owner = last
	}
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if !p.oneIn(3, "held") {
		err = p.prepare([][]any{{"DEL", s.Names[0]}})
	}
	return errors.Join(err, p.step(s))
}

func (p *lockPlayer) follow() error {
	s, err := p.new(ops(oracle.FairAcquire))
	s.Owner = playOwners[0]
	queue, timeouts := codec.QueueKey(s.Names[0]), codec.TimeoutKey(s.Names[0])
	commands := [][]any{
		{"DEL", s.Names[0], queue, timeouts},
		{"HSET", s.Names[0], playOwners[1], 1},
		{"RPUSH", queue, playOwners[2]},
		{"ZADD", timeouts, p.now + 9000, playOwners[2]},
		{"RPUSH", queue, playOwners[3]},
	}
	if err := errors.Join(err, p.prepare(commands[:rapid.IntRange(4, 5).Draw(p.rt, "followed")])); err != nil {
		return err
	}
	return p.step(s)
}

func rwMoves(p *lockPlayer) []func() error {
	return []func() error{p.acquire, p.acquire, p.writes, p.writes, p.writes, p.writerLeaves, p.endless, p.passAll,
		p.renewDead}
}

func (p *lockPlayer) writes() error {
	enters := ops(oracle.ReadAcquire, oracle.WriteAcquire)
	s, err := p.new(append(enters, oracle.WriteFree, oracle.WriteRenew, oracle.ReadFree))
	held := false
	for _, owner := range playOwners {
		writer := oracle.Step{Op: oracle.WriteAcquire, Names: s.Names, Owner: owner}
		count, err2 := p.count(writer)
		if err = errors.Join(err, err2); count > 0 {
			s.Owner, held = owner, true
		}
	}
	if err != nil {
		return err
	}
	if !held {
		s.Op = oracle.WriteAcquire
		p.taken = &s
		return p.step(s)
	}
	count, err := p.count(s)
	switch {
	case p.oneIn(5, "dies"):
		err = errors.Join(err, p.prepare([][]any{{"DEL", s.HoldKey(1), s.HoldKey(2), s.HoldKey(3)}}))
	case p.oneIn(5, "cut"):
		err = errors.Join(err, p.prepare([][]any{{"PEXPIRE", s.Names[0], playLeases[0] / 2}}))
	}
	switch {
	case err != nil:
		return err
	case slices.Contains(enters, s.Op):
		s.Target = count + 1
		p.taken = &s
	case s.Op != oracle.WriteRenew:
		s.Target = max(count-1, 0)
		return p.releaseAs(s)
	}
	return p.step(s)
}

func (p *lockPlayer) writerLeaves() error {
	s, err := p.new(ops(oracle.WriteFree))
	s.Target = rapid.Int64Range(0, 1).Draw(p.rt, "target")
	name := s.Names[0]
	commands := [][]any{
		{"DEL", name, s.HoldKey(1), s.HoldKey(2)},
		{"HSET", name, "mode", "write", s.Field(), s.Target + 1, s.Owner, 2},
		{"PEXPIRE", name, p.lease()},
	}
	if !p.oneIn(3, "dead") {
		commands = append(commands, []any{"SET", s.HoldKey(2), "1", "PX", p.lease()})
	}
	if err := errors.Join(err, p.prepare(commands)); err != nil {
		return err
	}
	return p.releaseAs(s)
}

// endless acquires or renews a lock without a TTL for a reader.
func (p *lockPlayer) endless() error {
	s, err := p.new(ops(oracle.ReadAcquire, oracle.ReadRenew))
	s.Owner = playOwners[0]
	other, name := s, s.Names[0]
	other.Owner = playOwners[1]
	hash := []any{"HSET", name, "mode", "read", s.Owner, 1, other.Owner, 1}
	if p.oneIn(2, "written") {
		hash = []any{"HSET", name, "mode", "write", s.Owner + ":write", 1, s.Owner, 1}
	}
	err = errors.Join(err, p.prepare([][]any{
		{"DEL", name}, hash,
		{"SET", s.HoldKey(1), "1", "PX", p.lease()}, {"SET", other.HoldKey(1), "1", "PX", p.lease()},
	}))
	if err != nil {
		return err
	}
	return p.step(s)
}

func (p *lockPlayer) renewDead() error {
	s, err := p.new(ops(oracle.ReadRenew))
	if err := errors.Join(err, p.prepare([][]any{{"DEL", s.HoldKey(1), s.HoldKey(2), s.HoldKey(3)}})); err != nil {
		return err
	}
	return p.step(s)
}

// leastLeft is so long that no key expires between the two runs of a step.
const leastLeft = 5000

// passAll simulates the passing of time by reducing the TTLs of all keys and deleting the expired ones.
func (p *lockPlayer) passAll() error {
	passed := rapid.SampledFrom([]int64{7000, 16000, 26000, 85000}).Draw(p.rt, "passed")
	names, err := redis.Strings(p.twin.Do("KEYS", "*"))
	for _, name := range names {
		left, err2 := redis.Int64(p.twin.Do("PTTL", name))
		if err = errors.Join(err, err2); left < 0 {
			continue
		}
		if left -= passed; left < leastLeft {
			left = 0
		}
		err = errors.Join(err, p.prepare([][]any{{"PEXPIRE", name, left}}))
	}
	return err
}

type objectPlayer struct {
	*player
	kind  *oracle.Kind
	now   int64
	taken *oracle.Step // the last acquire, whose permits are probably not released
}

var (
	objectNames = playNames[:2]
	objectIDs   = []string{
		"00000000000000000000000000000000", "ffffffffffffffffffffffffffffffff", "0a0d00205c22c3a9f09f9299fffe7f80",
		"11111111111111111111111111111111", "22222222222222222222222222222222", "33333333333333333333333333333333",
	}
	// strangersID is the ID of a permit that was never acquired.
	strangersID  = "99999999999999999999999999999999"
	objectLeases = []int64{0, 1000, 30000, 90000}
	objectLives  = []int64{20000, 90000}
)

func playObject(of *player, g game) error {
	p := &objectPlayer{player: of, kind: g.kind, now: time.Now().UnixMilli()}
	for range rapid.IntRange(20, 50).Draw(p.rt, "length") {
		moves := []func() error{p.operate, p.operate, p.operate, p.operate, p.operate, p.operate, p.disturb}
		switch p.kind {
		case &oracle.Semaphore:
			moves = append(moves, p.living)
		case &oracle.Permits:
			moves = append(moves, p.living, p.lasting)
		}
		if err := rapid.SampledFrom(moves).Draw(p.rt, "move")(); err != nil {
			return err
		}
	}
	return nil
}

// operate plays a random operation. If only Redisson has the operation, it is played only on Redisson's side.
func (p *objectPlayer) operate() error {
	p.now += rapid.SampledFrom([]int64{-500, 0, 0, 1, 1000, 31000}).Draw(p.rt, "passes")
	most := 3
	s := oracle.Step{
		Op:      rapid.SampledFrom(p.kind.OperationsOf(p.release)).Draw(p.rt, "op"),
		Names:   []string{rapid.SampledFrom(objectNames).Draw(p.rt, "name")},
		Permits: rapid.Int64Range(-3, 5).Draw(p.rt, "permits"),
		Lease:   rapid.SampledFrom(objectLeases).Draw(p.rt, "lease"),
		Now:     p.now,
	}
	switch {
	case s.Op == oracle.SemaphoreSetFor:
		s.Lease = rapid.SampledFrom(objectLives).Draw(p.rt, "life")
	case slices.Contains(ops(oracle.SemaphoreAcquire, oracle.SemaphoreRelease, oracle.SemaphoreReleaseIf), s.Op):
		s.Permits = max(s.Permits, -s.Permits, 1)
	case !p.release.TakesManyPermits(), !slices.Contains(ops(oracle.PermitAcquire, oracle.PermitReleaseAll), s.Op):
		most = 1
	}
	if p.kind == &oracle.Permits {
		s.IDs = rapid.SliceOfNDistinct(rapid.SampledFrom(objectIDs), 1, most, rapid.ID[string]).Draw(p.rt, "ids")
		p.again(&s)
	}
	if s.Op.Ours == nil {
		return p.twin.Alone(p.theirs, s)
	}
	return p.step(s)
}

func (p *objectPlayer) again(s *oracle.Step) {
	switch s.Op {
	case oracle.PermitAcquire, oracle.PermitAcquireForEver:
		p.taken = s
	case oracle.PermitRelease, oracle.PermitRenew:
		if p.taken != nil && rapid.Bool().Draw(p.rt, "again") {
			s.Names, s.IDs = p.taken.Names, p.taken.IDs[:1]
		}
	case oracle.PermitReleaseAll:
		if p.taken != nil && rapid.Bool().Draw(p.rt, "again") {
			s.Names, s.IDs = p.taken.Names, p.taken.IDs
		}
		if rapid.IntRange(1, 4).Draw(p.rt, "stranger") == 1 {
			s.IDs = append(slices.Clone(s.IDs), strangersID)
		}
	}
}

func (p *objectPlayer) disturb() error {
	name := rapid.SampledFrom(objectNames).Draw(p.rt, "name")
	ends := protocol.PermitsKey(name)
	commands := rapid.SampledFrom([][][]any{
		{{"DEL", name}},
		{{"DEL", name}},
		{{"DEL", name, ends}},
		{{"PEXPIRE", name, objectLives[0]}},
		{{"PEXPIRE", name, objectLives[1]}},
		{{"PERSIST", name}},
		{{"SET", name, "no number"}},
		{{"DEL", name}, {"HSET", name, "field", 1}},
		{{"SET", ends, "no set"}},
	}).Draw(p.rt, "commands")
	return p.prepare(commands)
}

func (p *objectPlayer) living() error {
	ops := []*oracle.Operation{oracle.SemaphoreAdd, oracle.SemaphoreDrain}
	if p.kind == &oracle.Permits {
		ops = []*oracle.Operation{oracle.PermitsAdd}
	}
	name := rapid.SampledFrom(objectNames).Draw(p.rt, "name")
	s := oracle.Step{
		Op: rapid.SampledFrom(ops).Draw(p.rt, "op"), Names: []string{name}, Now: p.now,
		Permits: rapid.Int64Range(-3, 5).Draw(p.rt, "permits"),
	}
	err := p.prepare([][]any{{"DEL", name}, {"SET", name, 2, "PX", objectLives[0]}})
	return errors.Join(err, p.step(s))
}

// lasting renews a permit with a long lease, or releases it together with an unknown permit.
func (p *objectPlayer) lasting() error {
	ops := []*oracle.Operation{oracle.PermitRenew}
	if p.release.TakesManyPermits() {
		ops = append(ops, oracle.PermitReleaseAll)
	}
	name := rapid.SampledFrom(objectNames).Draw(p.rt, "name")
	s := oracle.Step{
		Op: rapid.SampledFrom(ops).Draw(p.rt, "op"), Names: []string{name}, IDs: []string{objectIDs[0]}, Now: p.now,
		Lease: rapid.SampledFrom(objectLeases).Draw(p.rt, "lease"),
	}
	if s.Op == oracle.PermitReleaseAll {
		s.IDs = append(s.IDs, strangersID)
	}
	ends := protocol.PermitsKey(name)
	out := []any{"ZADD", ends, p.now + 60000, oracle.RawID(s.IDs[0])}
	if rapid.IntRange(1, 6).Draw(p.rt, "spoilt") == 6 {
		out = []any{"SET", ends, "no set"}
	}
	err := p.prepare([][]any{{"DEL", name, ends}, {"SET", name, 0}, out})
	return errors.Join(err, p.step(s))
}
