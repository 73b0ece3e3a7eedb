package compat

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

type game struct {
	kind                  *oracle.Kind
	enters, frees, forces []*oracle.Operation
	renews                []*oracle.Operation
	names                 []string
	moves                 func(p *lockPlayer) []func() error
	disturbances          func(p *lockPlayer, s oracle.Step) [][][]any
}

var games = []game{
	{
		kind: &oracle.Plain, names: playNames, enters: ops(oracle.Acquire), frees: ops(oracle.Free),
		forces: ops(oracle.Force), renews: ops(oracle.Renew), disturbances: plainDisturbances,
	},
	{
		kind: &oracle.Fair, names: playNames[:2], frees: ops(oracle.FairFree),
		enters: ops(oracle.FairAcquire, oracle.FairAcquire, oracle.FairTry),
		forces: ops(oracle.FairForce), moves: fairMoves, disturbances: fairDisturbances,
	},
	{
		kind: &oracle.Fenced, names: playNames, frees: ops(oracle.Free),
		enters: ops(oracle.AcquireToken, oracle.AcquireCounted),
		forces: ops(oracle.Force), renews: ops(oracle.Renew), disturbances: fencedDisturbances,
	},
	{
		kind: &oracle.ReadWrite, names: playNames[:2],
		enters: ops(oracle.ReadAcquire, oracle.ReadAcquire, oracle.WriteAcquire),
		frees:  ops(oracle.ReadFree, oracle.WriteFree), forces: ops(oracle.ReadForce, oracle.WriteForce),
		renews: ops(oracle.ReadRenew, oracle.ReadRenew, oracle.WriteRenew), moves: rwMoves, disturbances: rwDisturbances,
	},
	{kind: &oracle.Semaphore}, {kind: &oracle.Permits}, {kind: &oracle.Latch},
}

func ops(all ...*oracle.Operation) []*oracle.Operation { return all }

var (
	playNames  = []string{"plain", "{tag}x", "a{b", "замок"}
	playOwners = []string{
		"11111111-1111-1111-1111-111111111111:1",
		"11111111-1111-1111-1111-111111111111:-9223372036854775808",
		"01900000-0000-7000-8000-000000000002:7",
		"33333333-3333-3333-3333-333333333333:0",
	}
	// playLeases are so long that no key expires between the two runs of a step.
	playLeases = []int64{20000, 30000, 90000, 3600000}
	playWaits  = []int64{1, 5000, 300000}
)

// lockPlayer has its own clock, so that deadlines can pass without a delay.
type lockPlayer struct {
	*player
	game
	now   int64
	last  *oracle.Step // the last release; nil if its latch does not exist
	taken *oracle.Step // the last acquire, whose owner probably holds the lock
	n     int
}

func playLock(p *player, g game) error {
	l := &lockPlayer{player: p, game: g, now: 1795224888000}
	moves := []func() error{l.acquire, l.acquire, l.acquire, l.reenter, l.release, l.release, l.late, l.repeat, l.force,
		l.disturb}
	if g.renews != nil {
		moves = append(moves, l.renew, l.renew)
	}
	if g.moves != nil {
		moves = append(moves, g.moves(l)...)
	}
	for range rapid.IntRange(20, 60).Draw(p.rt, "length") {
		if err := rapid.SampledFrom(moves).Draw(p.rt, "move")(); err != nil {
			return err
		}
	}
	return nil
}

func (p *player) oneIn(of int, what string) bool {
	return rapid.IntRange(1, of).Draw(p.rt, what) == of
}

func (p *lockPlayer) name() string  { return rapid.SampledFrom(p.names).Draw(p.rt, "name") }
func (p *lockPlayer) owner() string { return rapid.SampledFrom(playOwners).Draw(p.rt, "owner") }
func (p *lockPlayer) lease() int64  { return rapid.SampledFrom(playLeases).Draw(p.rt, "lease") }

// new returns a random step, which often reuses the last owner and lock. It first deletes the latch of the last
// release, as the client does when it receives the reply.
func (p *lockPlayer) new(all []*oracle.Operation) (oracle.Step, error) {
	s := oracle.Step{
		Op: rapid.SampledFrom(all).Draw(p.rt, "op"), Names: []string{p.name()}, Owner: p.owner(), Lease: p.lease(),
		Now: p.now, Wait: rapid.SampledFrom(playWaits).Draw(p.rt, "wait"),
	}
	if p.taken != nil && p.oneIn(2, "again") {
		s.Names, s.Owner = p.taken.Names, p.taken.Owner
	}
	if p.last == nil {
		return s, nil
	}
	latch := p.last.Latch()
	p.last = nil
	return s, p.prepare([][]any{{"DEL", latch}})
}

func (p *lockPlayer) count(s oracle.Step) (int64, error) {
	count, err := p.twin.Do("HGET", s.Names[0], s.Field())
	if text, ok := count.(string); ok && err == nil {
		return strconv.ParseInt(text, 10, 64)
	}
	return 0, err
}

// acquire usually reenters the lock with a target that is one above the count.
func (p *lockPlayer) acquire() error {
	s, err := p.new(p.enters)
	if p.oneIn(15, "no lease") {
		s.Lease = 0
	}
	count, err2 := p.count(s)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if count > 0 && !p.oneIn(10, "anew") {
		s.Target = count + 1
	}
	p.taken = &s
	return p.step(s)
}

func (p *lockPlayer) reenter() error {
	s, err := p.new(p.enters)
	s.Target = rapid.Int64Range(1, 4).Draw(p.rt, "target")
	if err != nil {
		return err
	}
	return p.step(s)
}

func (p *lockPlayer) release() error {
	s, err := p.new(p.frees)
	if err == nil && p.kind != &oracle.ReadWrite && p.oneIn(10, "beside") {
		err = p.prepare([][]any{{"HSET", s.Names[0], s.Field(), 1, "somebody", 1}})
	}
	count, err2 := p.count(s)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	s.Target = max(count-1, 0)
	return p.releaseAs(s)
}

func (p *lockPlayer) late() error {
	s, err := p.new(p.frees)
	s.Target = rapid.Int64Range(0, 3).Draw(p.rt, "target")
	if err != nil {
		return err
	}
	return p.releaseAs(s)
}

func (p *lockPlayer) releaseAs(s oracle.Step) error {
	p.n++
	s.RequestID = fmt.Sprintf("%032x", p.n)
	p.last = &s
	return p.step(s)
}

func (p *lockPlayer) repeat() error {
	if p.last == nil {
		return p.release()
	}
	s := *p.last
	s.Repeat, s.Now = true, p.now
	return p.step(s)
}

func (p *lockPlayer) force() error {
	s, err := p.new(p.forces)
	s.Owner = ""
	if err != nil {
		return err
	}
	return p.step(s)
}

func (p *lockPlayer) renew() error {
	s, err := p.new(p.renews)
	all := rapid.SliceOfNDistinct(rapid.SampledFrom(p.names), 1, len(p.names), rapid.ID[string]).Draw(p.rt, "names")
	if !slices.Contains(all, s.Names[0]) {
		s.Names = append(s.Names, all...)
	}
	if err == nil && p.oneIn(8, "spoilt") {
		err = p.prepare([][]any{{"SET", s.Names[0], "no lock"}})
	}
	if err != nil {
		return err
	}
	return p.step(s)
}

// disturb changes a key as another program or a failure might.
func (p *lockPlayer) disturb() error {
	s := oracle.Step{Op: p.enters[0], Names: []string{p.name()}, Owner: p.owner()}
	if p.taken != nil && p.oneIn(2, "held") {
		s.Names = p.taken.Names
	}
	return p.prepare(rapid.SampledFrom(p.disturbances(p, s)).Draw(p.rt, "commands"))
}

func plainDisturbances(p *lockPlayer, s oracle.Step) [][][]any {
	name := s.Names[0]
	return [][][]any{
		{{"PEXPIREAT", name, time.Now().Add(-time.Second).UnixMilli()}},
		{{"PERSIST", name}},
		{{"SET", name, "no lock"}},
		{{"DEL", name}, {"RPUSH", name, "no lock"}},
		{{"DEL", name}, {"HSET", name, s.Owner, rapid.IntRange(1, 11).Draw(p.rt, "count")}},
		{{"DEL", name}},
	}
}

func fencedDisturbances(p *lockPlayer, s oracle.Step) [][][]any {
	counter := protocol.TokenKey(s.Names[0])
	all := [][][]any{{{"DEL", counter}}}
	for _, value := range []string{"no number", "9007199254740991", "9223372036854775806"} {
		all = append(all, [][]any{{"SET", counter, value}})
	}
	return append(plainDisturbances(p, s), all...)
}

func fairDisturbances(p *lockPlayer, s oracle.Step) [][][]any {
	queue, timeouts := codec.QueueKey(s.Names[0]), codec.TimeoutKey(s.Names[0])
	left := rapid.Int64Range(0, 9000).Draw(p.rt, "left")
	return append(
		plainDisturbances(p, s),
		[][]any{{"SET", queue, "no queue"}},
		[][]any{{"SET", timeouts, "no timeouts"}},
		[][]any{{"DEL", queue, timeouts}},
		[][]any{{"DEL", s.Names[0], queue, timeouts}},
		[][]any{{"DEL", queue}, {"RPUSH", queue, s.Owner}},
		[][]any{{"DEL", queue}, {"RPUSH", queue, "somebody"}},
		[][]any{{"DEL", timeouts}, {"ZADD", timeouts, p.now + left, s.Owner}},
		[][]any{{"DEL", timeouts}, {"ZADD", timeouts, -5, "nobody"}},
	)
}

func rwDisturbances(p *lockPlayer, s oracle.Step) [][][]any {
	return append(
		plainDisturbances(p, s),
		[][]any{{"DEL", s.HoldKey(1)}},
		[][]any{{"DEL", s.HoldKey(2)}},
		[][]any{{"SET", s.HoldKey(3), "1", "PX", 60000}},
	)
}
