package compat

import (
	"errors"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// objectPlayer plays a kind without owners: semaphores, and latches.
type objectPlayer struct {
	*player
	kind  *oracle.Kind
	now   int64        // the callers' clock
	taken *oracle.Step // the acquire before, whose permits are probably out
}

var (
	objectNames = playNames[:2]
	// objectIDs are those of permits: any bytes.
	objectIDs = []string{
		"00000000000000000000000000000000", "ffffffffffffffffffffffffffffffff", "0a0d00205c22c3a9f09f9299fffe7f80",
		"11111111111111111111111111111111", "22222222222222222222222222222222", "33333333333333333333333333333333",
	}
	// strangersID is the id of a permit that was never taken.
	strangersID  = "99999999999999999999999999999999"
	objectLeases = []int64{0, 1000, 30000, 90000}
	// objectLives are times to live, none so short that a key expires between the two runs.
	objectLives = []int64{20000, 90000}
)

// playObject returns the first difference that nothing explains.
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

// operate does one of the kind's operations. One that ours lack is done by Redisson alone.
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
	case slices.Contains([]*oracle.Operation{oracle.SemaphoreAcquire, oracle.SemaphoreRelease, oracle.SemaphoreReleaseIf}, s.Op):
		s.Permits = max(s.Permits, -s.Permits, 1)
	case !p.release.TakesManyPermits(), !slices.Contains([]*oracle.Operation{oracle.PermitAcquire, oracle.PermitReleaseAll}, s.Op):
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

// again has a step about one permit be about one that was taken before, mostly.
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

// disturb changes a key as other programs may, or as time does.
func (p *objectPlayer) disturb() error {
	name := rapid.SampledFrom(objectNames).Draw(p.rt, "name")
	ends := codec.PermitsKey(name)
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

// living changes a counter that has a time to live.
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

// lasting gives a permit back that is out for long, beside one that is unknown, or renews it. Their
// key may be spoilt.
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
	ends := codec.PermitsKey(name)
	out := []any{"ZADD", ends, p.now + 60000, oracle.RawID(s.IDs[0])}
	if rapid.IntRange(1, 6).Draw(p.rt, "spoilt") == 6 {
		out = []any{"SET", ends, "no set"}
	}
	err := p.prepare([][]any{{"DEL", name, ends}, {"SET", name, 0}, out})
	return errors.Join(err, p.step(s))
}
