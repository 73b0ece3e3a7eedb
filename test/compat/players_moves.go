package compat

import (
	"errors"
	"slices"
	"strconv"

	"github.com/gomodule/redigo/redis"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

func fairMoves(p *lockPlayer) []func() error {
	return []func() error{p.passTime, p.passTime, p.passTime, p.turn, p.giveUp, p.giveUp, p.follow}
}

// passTime moves the clock: a little, or to the deadline of a first waiter, or to the moment
// before it.
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
		if deadline > 1e12 { // else it is long past
			p.now = int64(deadline) - rapid.Int64Range(0, 1).Draw(p.rt, "before")
		}
		return err
	}
	return err
}

// waiter returns the first in the queue, or the last with −1, if there is one.
func (p *lockPlayer) waiter(name string, place int) (owner string, ok bool, err error) {
	reply, err := p.twin.Do("LINDEX", codec.QueueKey(name), place)
	owner, ok = reply.(string)
	return owner, ok, err
}

// turn frees the lock, and the first waiter takes it.
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

// giveUp takes an owner out of the queue, most often the last one there. The lock may have
// expired.
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

// follow is queued behind a waiter that is alive, or behind one without a deadline.
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
	return []func() error{p.acquire, p.acquire, p.writes, p.writes, p.writes, p.writerLeaves, p.endless, p.passAll, p.renewDead}
}

// writes takes a lock as a writer, or has its writer write again, read, or release one of these.
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
	case p.oneIn(5, "cut"): // by a reader of Redisson's
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

// writerLeaves has a writer leave that has read inside: alive as a reader or not.
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

// endless has a reader come in, or be renewed, where the lock has lost its time to live: beside
// another reader, or inside what it writes.
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

// renewDead renews a reader whose holds are over.
func (p *lockPlayer) renewDead() error {
	s, err := p.new(ops(oracle.ReadRenew))
	if err := errors.Join(err, p.prepare([][]any{{"DEL", s.HoldKey(1), s.HoldKey(2), s.HoldKey(3)}})); err != nil {
		return err
	}
	return p.step(s)
}

// leastLeft is what a key has left at least, after time has passed: less would expire between
// the two runs of a step.
const leastLeft = 5000

// passAll lets time pass: every key expires sooner, and keys whose time is over are gone.
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
