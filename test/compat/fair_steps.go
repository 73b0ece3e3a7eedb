package compat

import (
	"fmt"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// fairPlayer plays the fair lock. Its clock is its own, so that deadlines come.
type fairPlayer struct {
	*player
	now   int64
	last  *oracle.Step // the release before, for as long as its latch is there
	taken *oracle.Step // the acquire before, whose owner probably holds its lock
	n     int
}

var (
	fairNames  = playNames[:2]
	fairOwners = append(playOwners, "33333333-3333-3333-3333-333333333333:0")
	fairWaits  = []int64{1, 5000, 300000}
)

// play returns the first difference that nothing explains.
func playFair(p *player) error {
	f := &fairPlayer{player: p, now: 1795224888000}
	moves := []func() error{
		f.acquire, f.acquire, f.acquire, f.try, f.reenter, f.release, f.release, f.late, f.repeat,
		f.giveUp, f.giveUp, f.force, f.disturb, f.follow,
	}
	for range rapid.IntRange(10, 50).Draw(p.rt, "length") {
		if err := f.tick(); err != nil {
			return err
		}
		if err := rapid.SampledFrom(moves).Draw(p.rt, "move")(); err != nil {
			return err
		}
	}
	return nil
}

func (f *fairPlayer) name() string { return rapid.SampledFrom(fairNames).Draw(f.rt, "name") }
func (f *fairPlayer) wait() int64  { return rapid.SampledFrom(fairWaits).Draw(f.rt, "wait") }
func (f *fairPlayer) owner() string {
	return rapid.SampledFrom(fairOwners).Draw(f.rt, "owner")
}

// tick moves the clock: a little, or to the deadline of a first waiter, or to the
// moment before it.
func (f *fairPlayer) tick() error {
	switch rapid.IntRange(0, 7).Draw(f.rt, "tick") {
	case 0:
		f.now++
	case 1:
		f.now += rapid.Int64Range(1000, 90000).Draw(f.rt, "ms")
	case 2, 3:
		return f.jump(f.name(), rapid.Int64Range(0, 1).Draw(f.rt, "before"))
	}
	return nil
}

func (f *fairPlayer) jump(name string, before int64) error {
	head, ok, err := f.waiter(name, 0)
	if err != nil || !ok {
		return err
	}
	score, err := f.twin.Do("ZSCORE", codec.TimeoutKey(name), head)
	text, ok := score.(string)
	if err != nil || !ok {
		return err
	}
	deadline, err := strconv.ParseFloat(text, 64)
	if deadline > 1e12 { // else it is long past
		f.now = int64(deadline) - before
	}
	return err
}

// waiter returns the first in the queue, or the last with −1, if there is one.
func (f *fairPlayer) waiter(name string, place int) (owner string, ok bool, err error) {
	reply, err := f.twin.Do("LINDEX", codec.QueueKey(name), place)
	owner, ok = reply.(string)
	return owner, ok, err
}

// forget deletes the latch of the last release, as the client does that has its
// reply.
func (f *fairPlayer) forget() error {
	if f.last == nil {
		return nil
	}
	_, err := f.twin.Do("DEL", codec.LatchKey(f.last.Names[0], f.last.RequestID))
	f.last = nil
	return err
}

// new is a step for some owner, often the last one's and its lock.
func (f *fairPlayer) new(op *oracle.Operation) (oracle.Step, error) {
	s := oracle.Step{
		Op: op, Names: []string{f.name()}, Owner: f.owner(), Now: f.now, Wait: f.wait(),
		Lease: rapid.SampledFrom(playLeases).Draw(f.rt, "lease"),
	}
	if f.taken != nil && rapid.IntRange(0, 2).Draw(f.rt, "whose") == 0 {
		s.Names, s.Owner = f.taken.Names, f.taken.Owner
	}
	return s, f.forget()
}

func (f *fairPlayer) acquire() error { return f.enter(oracle.FairAcquire) }
func (f *fairPlayer) try() error     { return f.enter(oracle.FairTry) }

// enter takes a lock, or enters it again as its owner does in the ordinary course:
// to one more than there is.
func (f *fairPlayer) enter(op *oracle.Operation) error {
	s, err := f.new(op)
	if err != nil {
		return err
	}
	if rapid.IntRange(0, 19).Draw(f.rt, "no lease") == 0 {
		s.Lease = 0 // deletes the key again
	}
	if rapid.IntRange(0, 3).Draw(f.rt, "turn") == 0 {
		if err := f.turn(&s); err != nil {
			return err
		}
	}
	count, err := f.count(s)
	if err != nil {
		return err
	}
	if count > 0 && rapid.IntRange(0, 9).Draw(f.rt, "anew") > 0 {
		s.Target = count + 1
	}
	f.taken = &s
	return f.step(s)
}

// turn frees the lock and makes a step be the first waiter's.
func (f *fairPlayer) turn(s *oracle.Step) error {
	head, ok, err := f.waiter(s.Names[0], 0)
	if !ok || err != nil {
		return err
	}
	s.Owner = head
	_, err = f.twin.Do("DEL", s.Names[0])
	return err
}

// reenter aims anywhere, as a re-entry does that was held up on its way.
func (f *fairPlayer) reenter() error {
	s, err := f.new(rapid.SampledFrom([]*oracle.Operation{oracle.FairTry, oracle.FairAcquire}).Draw(f.rt, "op"))
	if err != nil {
		return err
	}
	s.Target = rapid.Int64Range(1, 4).Draw(f.rt, "target")
	return f.step(s)
}

// count asks how often a step's owner has entered its lock; a key that is no lock
// has no owner.
func (f *fairPlayer) count(s oracle.Step) (int64, error) {
	count, err := f.twin.Do("HGET", s.Names[0], s.Owner)
	if text, ok := count.(string); ok && err == nil {
		return strconv.ParseInt(text, 10, 64)
	}
	return 0, err
}

// release aims at one less than the count there is, as a hold does that is given
// back in the ordinary course.
func (f *fairPlayer) release() error {
	s, err := f.newRelease()
	if err != nil {
		return err
	}
	if rapid.IntRange(0, 7).Draw(f.rt, "beside") == 0 {
		if _, err := f.twin.Do("HSET", s.Names[0], s.Owner, 1, "somebody", 1); err != nil {
			return err
		}
	}
	count, err := f.count(s)
	if err != nil {
		return err
	}
	s.Target = max(count-1, 0)
	return f.releaseAs(s)
}

// late aims anywhere, as a release does that was held up on its way.
func (f *fairPlayer) late() error {
	s, err := f.newRelease()
	if err != nil {
		return err
	}
	s.Target = rapid.Int64Range(0, 3).Draw(f.rt, "target")
	return f.releaseAs(s)
}

func (f *fairPlayer) newRelease() (oracle.Step, error) {
	f.n++
	s, err := f.new(oracle.FairFree)
	s.RequestID = fmt.Sprintf("%032x", f.n)
	return s, err
}

func (f *fairPlayer) releaseAs(s oracle.Step) error {
	f.last = &s
	return f.step(s)
}

// repeat sends the release before again, at its time or later.
func (f *fairPlayer) repeat() error {
	if f.last == nil {
		return f.release()
	}
	s := *f.last
	s.Repeat, s.Now = true, f.now
	return f.step(s)
}

// giveUp takes an owner out of the queue, most often the last one there. The lock
// may have expired.
func (f *fairPlayer) giveUp() error {
	s, err := f.new(oracle.FairGiveUp)
	if err != nil {
		return err
	}
	last, ok, err := f.waiter(s.Names[0], -1)
	if err != nil {
		return err
	}
	if ok && rapid.IntRange(0, 3).Draw(f.rt, "who") > 0 {
		s.Owner = last
	}
	if rapid.IntRange(0, 2).Draw(f.rt, "expired") > 0 {
		if _, err := f.twin.Do("DEL", s.Names[0]); err != nil {
			return err
		}
	}
	return f.step(s)
}

func (f *fairPlayer) force() error {
	s, err := f.new(oracle.FairForce)
	if err != nil {
		return err
	}
	return f.step(s)
}

// follow is queued behind a waiter that is alive, or behind one without a deadline.
func (f *fairPlayer) follow() error {
	s, err := f.new(oracle.FairAcquire)
	if err != nil {
		return err
	}
	s.Owner = fairOwners[0]
	queue, timeouts := codec.QueueKey(s.Names[0]), codec.TimeoutKey(s.Names[0])
	commands := [][]any{
		{"DEL", s.Names[0], queue, timeouts},
		{"HSET", s.Names[0], fairOwners[1], 1},
		{"RPUSH", queue, fairOwners[2]},
		{"ZADD", timeouts, f.now + 9000, fairOwners[2]},
		{"RPUSH", queue, fairOwners[3]},
	}
	for _, c := range commands[:rapid.IntRange(4, 5).Draw(f.rt, "followed")] {
		command, _ := c[0].(string)
		if _, err := f.twin.Do(command, c[1:]...); err != nil {
			return err
		}
	}
	return f.step(s)
}

// disturb changes a key as others may, and as failures do.
func (f *fairPlayer) disturb() error {
	name, owner := f.name(), f.owner()
	if f.taken != nil && rapid.Bool().Draw(f.rt, "held") {
		name = f.taken.Names[0]
	}
	queue, timeouts := codec.QueueKey(name), codec.TimeoutKey(name)
	past := time.Now().Add(-time.Second).UnixMilli()
	commands := [][]any{
		{"PEXPIREAT", name, past},
		{"PEXPIREAT", name, past},
		{"PERSIST", name},
		{"HSET", name, owner, rapid.IntRange(1, 11).Draw(f.rt, "count")},
		{"HSET", name, owner, 1},
		{"SET", name, "no lock"},
		{"SET", queue, "no queue"},
		{"SET", timeouts, "no timeouts"},
		{"DEL", queue, timeouts},
		{"DEL", name, queue, timeouts},
		{"RPUSH", queue, owner},
		{"RPUSH", queue, "somebody"},
		{"ZADD", timeouts, f.now + rapid.Int64Range(0, 9000).Draw(f.rt, "left"), owner},
		{"ZADD", timeouts, -5, "nobody"},
		{"ZREM", timeouts, owner},
		{"LREM", queue, 1, owner},
	}
	c := rapid.SampledFrom(commands).Draw(f.rt, "command")
	command, _ := c[0].(string)
	_, err := f.twin.Do(command, c[1:]...)
	return err
}
