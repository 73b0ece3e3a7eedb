package luasrc

import (
	"strings"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// queueOp is what a random step that looks after a queue draws besides. Owners are
// those of two processes, the even ones and the odd.
type queueOp struct {
	Mine       []int // owners of the caller's process, and perhaps others
	Known      []int // places of others that something is known of
	Living     int   // bits: which of them live
	OtherWait  int64 // what they are known to take off, and more of each
	Keep, Fair int64
	Window     int
	Dead       int // how many of the first are given
	Wrong      int // which of them, counted from 1, is not as it is on the server
	How        int // what is wrong with it
}

// How one that is given can differ from what is on the server.
const (
	anotherOwner = iota
	anotherDeadline
	anotherWriting
	noDeadline
)

var queueOps = rapid.Custom(func(t *rapid.T) queueOp {
	return queueOp{
		Mine:      rapid.SliceOfN(rapid.IntRange(0, fairOwners-1), 0, 5).Draw(t, "mine"),
		Known:     rapid.SliceOfN(rapid.IntRange(0, 4), 0, 3).Draw(t, "known"),
		Living:    rapid.SampledFrom([]int{0, 1, 2, 3, 7, 7}).Draw(t, "living"),
		OtherWait: rapid.SampledFrom([]int64{0, 5, 8000, 400000}).Draw(t, "otherWait"),
		Keep:      rapid.SampledFrom([]int64{1, 1, 15000, 1000000}).Draw(t, "keep"),
		Fair:      rapid.SampledFrom([]int64{7000, 300000}).Draw(t, "fair"),
		Window:    rapid.SampledFrom([]int{0, 1, 2, 64}).Draw(t, "window"),
		Dead:      rapid.SampledFrom([]int{0, 1, 1, 1, 2, 2, 3, 4}).Draw(t, "dead"),
		Wrong:     rapid.SampledFrom([]int{0, 0, 0, 0, 1, 2, 3}).Draw(t, "wrong"),
		How:       rapid.IntRange(anotherOwner, noDeadline).Draw(t, "how"),
	}
})

// keepCalls are the steps that look after a queue, and what the model does for each.
var keepCalls = map[string]struct {
	fill  func(l *Fair, call *transport.Call, c queueCall)
	model func(m *fairModel, c queueCall) any
}{
	"heartbeat": {func(l *Fair, call *transport.Call, c queueCall) {
		fillBeat(l, call, c.Now, Beat{Keep: c.keep, FairWait: c.fair, Window: c.window}, c.mine, c.others)
	}, (*fairModel).Heartbeat},
	"evict": {func(l *Fair, call *transport.Call, c queueCall) {
		var dead []reply.Place
		for _, d := range c.dead {
			dead = append(dead, reply.Place{Owner: d.owner, Deadline: d.text})
		}
		l.Evict(call, c.Now, c.keep, dead)
	}, (*fairModel).Evict},
	"nudge": {func(l *Fair, call *transport.Call, c queueCall) {
		l.Nudge(call, c.Owner)
	}, (*fairModel).Nudge},
}

// stepKeep plays such a step on both and returns how the replies differ.
func (p *fairPlayer) stepKeep(op fairOp) error {
	c := p.resolveQueueOp(op)
	does := keepCalls[op.Does]
	reply, err := p.run(filled(op.Does, func(call *transport.Call) { does.fill(fairLock(p.l, "PUBLISH"), call, c) }))
	if err != nil {
		return err
	}
	c.remains = p.anyDeadline()
	want := does.model(p.fairModel, c)
	return differs("reply", want, replyOf(reply, nil, want))
}

// resolveQueueOp finds the owner and the time.
func (p *fairPlayer) resolveQueueOp(op fairOp) queueCall {
	c := queueCall{fairCall: p.resolve(op), keep: op.Keep, fair: op.Fair, window: op.Window, dead: p.seenEntries(op.queueOp)}
	for _, n := range op.Mine {
		if n%2 == op.Who%2 {
			c.mine = append(c.mine, own{fairOwner(n), op.Wait + int64(n)})
		}
	}
	for i, n := range op.Known {
		c.others = append(c.others, other{p.ownerAt(n), op.OtherWait + int64(i), op.Living>>i&1 == 1})
	}
	// What an eviction tells depends on the first that it leaves.
	if deadline, has := p.Deadlines[p.ownerAt(op.Dead)]; has && op.Does == "evict" && op.When >= atHead {
		c.Now = int64(deadline) + int64(op.When-atHead)
	}
	return c
}

// seenEntries are the first in the queue with their deadlines, as the server writes
// them, but for the one that is to be wrong.
func (p *fairPlayer) seenEntries(op queueOp) []seenEntry {
	var dead []seenEntry
	for i, owner := range p.Queue[:min(op.Dead, len(p.Queue))] {
		s := seenEntry{owner: owner}
		s.deadline, s.has = p.Deadlines[owner]
		for _, before := range dead {
			if before.owner == owner {
				s.deadline, s.has = 0, false // it went with the first place
			}
		}
		if s.has {
			s.text = p.written(owner)
		}
		if i+1 == op.Wrong {
			s = s.spoilt(op.How)
		}
		dead = append(dead, s)
	}
	return dead
}

func (s seenEntry) spoilt(how int) seenEntry {
	switch {
	case how == anotherOwner:
		s.owner += "0"
	case how == noDeadline && s.has:
		s.deadline, s.has, s.text = 0, false, ""
	case how == anotherWriting && s.has && !strings.Contains(s.text, "."):
		s.text = s.text + ".0"
	default:
		s.text = "1" + s.text
	}
	return s
}

// written is how the server writes an owner's deadline.
func (p *fairPlayer) written(owner string) string {
	text, err := redis.String(p.conn.Do("ZSCORE", codec.TimeoutKey(p.l), owner))
	require.NoError(p.t, err)
	return text
}

// anyDeadline is one that is on the server now.
func (p *fairPlayer) anyDeadline() *seenEntry {
	first, err := redis.Values(p.conn.Do("ZRANGE", codec.TimeoutKey(p.l), 0, 0, "WITHSCORES"))
	require.NoError(p.t, err)
	if len(first) == 0 {
		return nil
	}
	var s seenEntry
	_, err = redis.Scan(first, &s.owner, &s.deadline)
	require.NoError(p.t, err)
	return &s
}
