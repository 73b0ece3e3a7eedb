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
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

// fairOp is one random step. It stands for itself: owner and time are resolved
// when it is played.
type fairOp struct {
	Does          string
	Who           int // an owner, or theHolder or theHead
	When          int // by the caller's own clock, or around the head's deadline
	Wait, Lease   int64
	Target, Latch int64
	More          []int // owners that give up in the same call
	queueOp
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

// taking and keeping are what plays are made of: the calls of owners that want the
// lock, or the calls that maintain their queue. A play of all of it has too little
// of each.
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
			Does:    rapid.SampledFrom(of).Draw(t, "does"),
			Who:     rapid.IntRange(0, theHead).Draw(t, "who"),
			When:    rapid.SampledFrom([]int{ownClock, ownClock, ownClock, beforeHead, atHead, afterHead}).Draw(t, "when"),
			Wait:    rapid.SampledFrom([]int64{1, 10, 5000, 77777, 300000}).Draw(t, "wait"),
			Lease:   rapid.SampledFrom([]int64{100000, 1000000, 10000000}).Draw(t, "lease"),
			Target:  rapid.SampledFrom([]int64{0, 0, 0, 1, 2, 3, 10}).Draw(t, "target"),
			Latch:   rapid.Int64Range(0, 1).Draw(t, "latch"),
			More:    rapid.SliceOfN(rapid.IntRange(0, fairOwners-1), 0, 4).Draw(t, "more"),
			queueOp: queueOps.Draw(t, "keep"),
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
	rapid.Check(testlevel.Drawn{T: t}, func(rt *rapid.T) {
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
	fill  func(l *Fair, call *transport.Call, c fairCall, latch string)
	model func(m *fairModel, c fairCall) any
}{
	"try": {func(l *Fair, call *transport.Call, c fairCall, _ string) {
		l.Try(call, c.Now, c.Owner, c.Wait, c.Lease)
		withoutDetails(call)
	}, (*fairModel).Try},
	"acquire": {func(l *Fair, call *transport.Call, c fairCall, _ string) {
		l.Acquire(call, c.Now, c.Owner, c.Wait, c.Lease)
		withoutDetails(call)
	}, (*fairModel).Acquire},
	"reenter": {func(l *Fair, call *transport.Call, c fairCall, _ string) {
		l.Reenter(call, c.Now, c.Owner, c.Lease, c.Target)
	}, (*fairModel).Reenter},
	"release": {func(l *Fair, call *transport.Call, c fairCall, _ string) {
		l.Release(call, c.Now, c.Owner, c.Lease, c.Target)
	}, (*fairModel).Release},
	"releaseShared": {func(l *Fair, call *transport.Call, c fairCall, latch string) {
		l.ReleaseShared(call, latch, c.Now, c.Owner, c.Lease)
	}, (*fairModel).ReleaseShared},
	"force": {func(l *Fair, call *transport.Call, c fairCall, _ string) {
		l.ForceRelease(call, c.Now)
	}, (*fairModel).Force},
	"giveUp": {func(l *Fair, call *transport.Call, c fairCall, _ string) {
		l.GiveUp(call, c.Now, c.Owner, c.Wait)
		for _, more := range c.More {
			l.GiveUp(call, c.Now, more.owner, more.wait)
		}
	}, (*fairModel).GiveUp},
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
	reply, err := p.run(filled(op.Does, func(call *transport.Call) {
		does.fill(fairLock(p.l, "PUBLISH"), call, c, codec.LatchKey(p.l, c.Latch))
	}))
	if err != nil {
		return err
	}
	c.Left = leftIn(reply)
	return differs("reply", does.model(p.fairModel, c), reply)
}

// leftIn takes a reply that can be what the lock has left for that: only the server
// knows what it had at that moment.
func leftIn(reply any) func(most int64) int64 {
	return func(most int64) int64 {
		if ms, ok := reply.(int64); ok && about(most).covers(ms) {
			return ms
		}
		return most
	}
}

// resolve finds the owner and the time.
func (p *fairPlayer) resolve(op fairOp) fairCall {
	who, head := op.Who, p.ownerAt(0)
	c := fairCall{Wait: op.Wait, Lease: op.Lease, Target: op.Target, Latch: fmt.Sprint(op.Latch)}
	for i, more := range op.More {
		c.More = append(c.More, leaver{fairOwner(more), op.Wait + int64(i)})
	}
	switch who {
	case theHead:
		who = 0
		if head != "" {
			c.Owner = head
		}
	case theHolder:
		who = 0
		for _, owner := range slices.Sorted(maps.Keys(p.Counts)) {
			c.Owner = owner
		}
	}
	if c.Owner == "" {
		c.Owner = fairOwner(who)
	}
	c.Now = t0 + p.passed + skews[who]
	if deadline, has := p.Deadlines[head]; has && op.When != ownClock {
		c.Now = int64(deadline) + int64(op.When-atHead)
	}
	return c
}

func (p *fairPlayer) ownerAt(place int) string {
	if place < len(p.Queue) {
		return p.Queue[place]
	}
	return ""
}

func fairOwner(n int) string { return fmt.Sprintf("11111111-1111-1111-1111-111111111111:%d", n) }

// disturb plays a step that is no script: time, and what other programs do.
func (p *fairPlayer) disturb(op fairOp, c fairCall) {
	deadlines := codec.TimeoutKey(p.l)
	_, has := p.Deadlines[c.Owner]
	switch op.Does {
	case "pass":
		p.passed += op.Wait
	case "expire":
		p.do("PEXPIREAT", p.l, 1)
		clear(p.Counts)
	case "persist":
		p.do("PERSIST", p.l)
		p.PTTL = -1
	case "intrude":
		p.do("HSET", p.l, c.Owner, 1)
		if p.IsFree() {
			p.PTTL = -1
		}
		p.Counts[c.Owner] = 1
	case "forget":
		p.do("DEL", codec.LatchKey(p.l, c.Latch))
		delete(p.Latches, c.Latch)
	case "loseDeadline":
		p.do("ZREM", deadlines, c.Owner)
		delete(p.Deadlines, c.Owner)
	case "secondPlace":
		p.do("RPUSH", codec.QueueKey(p.l), c.Owner)
		p.Queue = append(p.Queue, c.Owner)
	case "fraction":
		if has {
			p.do("ZINCRBY", deadlines, "0.25", c.Owner)
			p.Deadlines[c.Owner] += 0.25
		}
	case "orphan":
		p.do("ZADD", deadlines, c.Now, c.Owner)
		p.Deadlines[c.Owner] = float64(c.Now)
	}
}

func (p *fairPlayer) do(command string, args ...any) {
	_, err := p.conn.Do(command, args...)
	require.NoError(p.t, err, command)
}

// check compares what the last step has sent and left.
func (p *fairPlayer) check(replies error) error {
	var due []string
	for _, owner := range p.Notified {
		due = append(due, codec.OwnerChannel(p.l, owner)+" 0")
	}
	p.Notified = nil
	return errors.Join(replies, p.leftDiffers(p.l, due, fairState(p.fairModel, p.l)))
}

// clear deletes what a play has left: it slows the next one down.
func (p *fairPlayer) clear() {
	names, err := redis.Values(p.conn.Do("KEYS", "*"+p.l+"*"))
	require.NoError(p.t, err)
	if len(names) > 0 {
		p.do("DEL", names...)
	}
}
