package luasrc

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/transport"
)

// fairOp is one random step. It stands for itself: who and when are found out as
// it is played.
type fairOp struct {
	Does          string
	Who           int // an owner, or theHolder or theHead
	When          int // by the caller's own clock, or around the head's deadline
	Wait, Lease   int64
	Target, Latch int64
	More          []int // owners that give up in the same call
	keepOp
}

// Owners and times that depend on what has happened.
const (
	theHolder = fairOwners
	theHead   = fairOwners + 1

	ownClock   = 0
	beforeHead = 1 // a millisecond before the head's deadline
	atHead     = 2
	afterHead  = 3
)

const fairOwners = 6

// skews are what the owners' clocks are ahead of the time that passes here.
var skews = [fairOwners]int64{0, 7, -1500, 20000, -400000, 86400000}

// taking and keeping are what plays are made of: of what those do who want the lock,
// or of what looks after their queue. A play of all of it has too little of each.
var (
	taking = []string{
		"try", "acquire", "acquire", "acquire", "acquire", "reenter", "release", "release", "releaseShared", "force",
		"giveUp", "giveUp", "pass", "expire", "intrude", "persist", "forget", "loseDeadline", "secondPlace", "fraction", "fraction", "orphan",
	}
	keeping = []string{
		"acquire", "acquire", "acquire", "acquire", "acquire", "acquire", "force", "giveUp", "pass", "expire", "intrude", "persist",
		"loseDeadline", "secondPlace", "fraction", "fraction", "orphan", "orphan",
		"heartbeat", "heartbeat", "heartbeat", "heartbeat", "evict", "evict", "evict", "nudge",
	}
)

func fairOps(of []string) *rapid.Generator[fairOp] {
	return rapid.Custom(func(t *rapid.T) fairOp {
		return fairOp{
			Does:   rapid.SampledFrom(of).Draw(t, "does"),
			Who:    rapid.IntRange(0, theHead).Draw(t, "who"),
			When:   rapid.SampledFrom([]int{ownClock, ownClock, ownClock, beforeHead, atHead, afterHead}).Draw(t, "when"),
			Wait:   rapid.SampledFrom([]int64{1, 10, 5000, 77777, 300000}).Draw(t, "wait"),
			Lease:  rapid.SampledFrom([]int64{100000, 1000000, 10000000}).Draw(t, "lease"),
			Target: rapid.SampledFrom([]int64{0, 0, 0, 1, 2, 3, 10}).Draw(t, "target"),
			Latch:  rapid.Int64Range(0, 1).Draw(t, "latch"),
			More:   rapid.SliceOfN(rapid.IntRange(0, fairOwners-1), 0, 4).Draw(t, "more"),
			keepOp: keepOps.Draw(t, "keep"),
		}
	})
}

var (
	takingPlays  = rapid.SliceOfN(fairOps(taking), 10, 60)
	keepingPlays = rapid.SliceOfN(fairOps(keeping), 10, 60)
	fairPlays    = rapid.OneOf(takingPlays, keepingPlays)
)

func TestFairScriptsDoWhatTheModelDoes(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, playFairModel)
}

func playFairModel(t *testing.T, target redistest.Target) {
	t.Helper()
	s := newQuietStage(t, target)
	rapid.Check(t, func(rt *rapid.T) {
		require.NoError(rt, s.playFair(fairPlays.Draw(rt, "ops")))
	})
}

// fairPlayer plays random steps on a server and on the model.
type fairPlayer struct {
	*stage
	*fairModel
	l      string
	passed int64
}

// playFair returns the first difference between server and model.
func (s *stage) playFair(ops []fairOp) error {
	p := &fairPlayer{stage: s, fairModel: newFairModel(), l: redistest.Key(s.t)}
	defer p.clear()
	for i, op := range ops {
		does := p.step(op)
		if err := p.check(does); err != nil {
			return fmt.Errorf("step %d, %+v: %w", i+1, op, err)
		}
	}
	return nil
}

// fairCalls are the steps that are scripts, and what the model does for each.
var fairCalls = map[string]struct {
	script *transport.Script
	keys   int
	args   func(c fairCall) []any
	model  func(m *fairModel, c fairCall) any
}{
	"try": {FairTry, 3, func(c fairCall) []any {
		return []any{c.now, c.owner, c.wait, c.lease}
	}, (*fairModel).try},
	"acquire": {FairAcquire, 3, func(c fairCall) []any {
		return []any{c.now, c.owner, c.wait, c.lease}
	}, (*fairModel).acquire},
	"reenter": {FairReenter, 3, func(c fairCall) []any {
		return []any{c.now, c.owner, c.lease, c.target}
	}, (*fairModel).reenter},
	"release": {FairRelease, 4, func(c fairCall) []any {
		return []any{c.now, c.owner, c.lease, c.target, "PUBLISH", "0"}
	}, (*fairModel).release},
	"releaseShared": {FairReleaseShared, 5, func(c fairCall) []any {
		return []any{c.now, c.owner, c.lease, "PUBLISH", "0", 16000}
	}, (*fairModel).releaseShared},
	"force": {FairForceRelease, 4, func(c fairCall) []any {
		return []any{c.now, "PUBLISH", "0"}
	}, (*fairModel).force},
	"giveUp": {FairGiveUp, 4, func(c fairCall) []any {
		args := []any{c.now, c.owner, c.wait, "PUBLISH", "0"}
		for _, l := range c.more {
			args = append(args, l.owner, l.wait)
		}
		return args
	}, (*fairModel).giveUp},
}

// step plays one step on both and returns how the replies differ.
func (p *fairPlayer) step(op fairOp) error {
	if _, keeps := keepCalls[op.Does]; keeps {
		return p.stepKeep(op)
	}
	c := p.resolve(op)
	does, isCall := fairCalls[op.Does]
	if !isCall {
		p.disturb(op, c)
		return nil
	}
	keys := []string{p.l, codec.QueueKey(p.l), codec.TimeoutKey(p.l), codec.LockChannel(p.l), codec.LatchKey(p.l, c.latch)}
	reply, err := p.run(vector{script: does.script, keys: keys[:does.keys], args: does.args(c)})
	if err != nil {
		return err
	}
	c.reply = reply
	return differs("reply", does.model(p.fairModel, c), reply)
}

// resolve finds out who and when.
func (p *fairPlayer) resolve(op fairOp) fairCall {
	who, head := op.Who, p.ownerAt(0)
	c := fairCall{wait: op.Wait, lease: op.Lease, target: op.Target, latch: fmt.Sprint(op.Latch)}
	for i, more := range op.More {
		c.more = append(c.more, leaver{fairOwner(more), op.Wait + int64(i)})
	}
	switch who {
	case theHead:
		who = 0
		if head != "" {
			c.owner = head
		}
	case theHolder:
		who = 0
		for _, owner := range slices.Sorted(maps.Keys(p.counts)) {
			c.owner = owner
		}
	}
	if c.owner == "" {
		c.owner = fairOwner(who)
	}
	c.now = t0 + p.passed + skews[who]
	if deadline, has := p.deadlines[head]; has && op.When != ownClock {
		c.now = int64(deadline) + int64(op.When-atHead)
	}
	return c
}

func (p *fairPlayer) ownerAt(place int) string {
	if place < len(p.queue) {
		return p.queue[place]
	}
	return ""
}

func fairOwner(n int) string { return fmt.Sprintf("11111111-1111-1111-1111-111111111111:%d", n) }

// disturb plays a step that is no script: time, and what other programs do.
func (p *fairPlayer) disturb(op fairOp, c fairCall) {
	deadlines := codec.TimeoutKey(p.l)
	_, has := p.deadlines[c.owner]
	switch op.Does {
	case "pass":
		p.passed += op.Wait
	case "expire":
		p.do("PEXPIREAT", p.l, 1)
		clear(p.counts)
	case "persist":
		p.do("PERSIST", p.l)
		p.pttl = -1
	case "intrude":
		p.do("HSET", p.l, c.owner, 1)
		if p.isFree() {
			p.pttl = -1
		}
		p.counts[c.owner] = 1
	case "forget":
		p.do("DEL", codec.LatchKey(p.l, c.latch))
		delete(p.latches, c.latch)
	case "loseDeadline":
		p.do("ZREM", deadlines, c.owner)
		delete(p.deadlines, c.owner)
	case "secondPlace":
		p.do("RPUSH", codec.QueueKey(p.l), c.owner)
		p.queue = append(p.queue, c.owner)
	case "fraction":
		if has {
			p.do("ZINCRBY", deadlines, "0.25", c.owner)
			p.deadlines[c.owner] += 0.25
		}
	case "orphan":
		p.do("ZADD", deadlines, c.now, c.owner)
		p.deadlines[c.owner] = float64(c.now)
	}
}

func (p *fairPlayer) do(command string, args ...any) {
	_, err := p.conn.Do(command, args...)
	require.NoError(p.t, err, command)
}

// check compares what the last step has sent and left.
func (p *fairPlayer) check(replies error) error {
	var due []string
	for _, owner := range p.told {
		due = append(due, codec.OwnerChannel(p.l, owner)+" 0")
	}
	p.told = nil
	return errors.Join(replies,
		differs("messages", due, p.messagesSince()),
		p.stateDiffers(p.l, p.state(p.l)),
	)
}

// clear deletes what a play has left: it slows the next one down.
func (p *fairPlayer) clear() {
	names, err := redis.Values(p.conn.Do("KEYS", "*"+p.l+"*"))
	require.NoError(p.t, err)
	if len(names) > 0 {
		p.do("DEL", names...)
	}
}
