package luasrc

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
)

// fairOp is one random step. Owner and time are resolved when it is played.
type fairOp struct {
	Does          string
	Who           int // an owner, or theHolder or theHead
	When          int // by the caller's own clock, or around the head's deadline
	Wait, Lease   int64
	Target, Latch int64
	More          []int // owners that leave in the same call

	// Of heartbeats and evictions. The even owners belong to one process, the odd ones to another.
	Mine       []int // owners of the caller's process, and perhaps others
	Known      []int // places of known others
	Living     int   // bits: which of them live
	OtherWait  int64
	Keep, Fair int64
	Window     int
	Dead       int // how many of the first are given
	Wrong      int // which of them, counted from 1, differs from the server's
	How        int
}

const (
	fairOwners = 6

	// Values of Who that depend on the state.
	theHolder = fairOwners
	theHead   = fairOwners + 1

	// Values of When: the own clock, or 1 ms before, at, or after the head's deadline.
	ownClock   = 0
	beforeHead = 1
	atHead     = 2
	afterHead  = 3

	// Values of How.
	anotherOwner    = 0
	anotherDeadline = 1
	anotherWriting  = 2
	noDeadline      = 3
)

// skews are the differences between the owners' clocks and the time that passes here.
var skews = [fairOwners]int64{0, 7, -1500, 20000, -400000, 86400000}

// Plays consist of acquisitions or of queue maintenance: a mix has too little of each.
var (
	taking  = words("try acquire*4 reenter release*2 releaseShared force giveUp*2 pass expire intrude persist forget loseDeadline secondPlace fraction*2 orphan")
	keeping = words("acquire*6 force giveUp pass expire intrude persist loseDeadline secondPlace fraction*2 orphan*2 heartbeat*4 evict*3 nudge")

	fairPlays = rapid.OneOf(rapid.SliceOfN(fairOps(taking), 10, 60), rapid.SliceOfN(fairOps(keeping), 10, 60))
)

func words(text string) (all []string) {
	for _, w := range strings.Fields(text) {
		word, n, _ := strings.Cut(w, "*")
		all = append(all, slices.Repeat([]string{word}, max(1, int((n + "0")[0]-'0')))...)
	}
	return all
}

func fairOps(of []string) *rapid.Generator[fairOp] {
	return rapid.Custom(func(t *rapid.T) fairOp {
		return fairOp{
			Does:      rapid.SampledFrom(of).Draw(t, "does"),
			Who:       rapid.IntRange(0, theHead).Draw(t, "who"),
			When:      rapid.SampledFrom([]int{ownClock, ownClock, ownClock, beforeHead, atHead, afterHead}).Draw(t, "when"),
			Wait:      rapid.SampledFrom([]int64{1, 10, 5000, 77777, 300000}).Draw(t, "wait"),
			Lease:     rapid.SampledFrom([]int64{100000, 1000000, 10000000}).Draw(t, "lease"),
			Target:    rapid.SampledFrom([]int64{0, 0, 0, 1, 2, 3, 10}).Draw(t, "target"),
			Latch:     rapid.Int64Range(0, 1).Draw(t, "latch"),
			More:      rapid.SliceOfN(rapid.IntRange(0, fairOwners-1), 0, 4).Draw(t, "more"),
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
}

func TestFairScriptsMatchModel(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, target redistest.Target) {
		t.Helper()
		s := newQuietStage(t, target)
		rapid.Check(testlevel.Drawn{T: t}, func(rt *rapid.T) {
			f, passed := s.newFairPlayer(), int64(0)
			for _, op := range fairPlays.Draw(rt, "ops") {
				if op.Does == "pass" {
					passed += op.Wait
				} else if c := f.resolve(op, passed); fairScripts[op.Does].fill != nil {
					f.call(op.Does, c)
				} else {
					f.disturb(op.Does, c)
				}
				require.NoError(rt, f.err)
			}
			for key := range f.state() {
				f.command("DEL", key) // they slow the next play down
			}
		})
	})
}

// resolve finds the owner, the time and the places of a step.
func (f *fairPlayer) resolve(op fairOp, passed int64) fairCall {
	c := fairCall{
		Wait: op.Wait, Lease: op.Lease, Target: op.Target, Latch: fmt.Sprint(op.Latch),
		Keep: op.Keep, Fair: op.Fair, Window: op.Window, Dead: f.seen(op),
	}
	who, head := op.Who, f.ownerAt(0)
	switch who {
	case theHead:
		who, c.Owner = 0, head
	case theHolder:
		who = 0
		for _, owner := range slices.Sorted(maps.Keys(f.Counts)) {
			c.Owner = owner
		}
	}
	if c.Owner == "" {
		c.Owner = fairOwner(who)
	}
	c.Now = t0 + passed + skews[who]
	near := head
	if op.Does == "evict" && op.When >= atHead { // its messages depend on the first that it leaves
		if _, has := f.Deadlines[f.ownerAt(op.Dead)]; has {
			near = f.ownerAt(op.Dead)
		}
	}
	if at, has := f.Deadlines[near]; has && op.When != ownClock {
		c.Now = int64(at) + int64(op.When-atHead)
	}
	for i, n := range op.More {
		c.More = append(c.More, waiter{fairOwner(n), op.Wait + int64(i)})
	}
	for _, n := range op.Mine {
		if n%2 == op.Who%2 {
			c.Mine = append(c.Mine, waiter{fairOwner(n), op.Wait + int64(n)})
		}
	}
	for i, n := range op.Known {
		c.Others = append(c.Others, reply.Other{Owner: f.ownerAt(n), Wait: op.OtherWait + int64(i), Living: op.Living>>i&1 == 1})
	}
	return c
}

func (f *fairPlayer) ownerAt(place int) string {
	if place < len(f.Queue) {
		return f.Queue[place]
	}
	return ""
}

func fairOwner(n int) string { return fmt.Sprintf("11111111-1111-1111-1111-111111111111:%d", n) }

// seen returns the first in the queue with their deadlines as the server writes them, except the one
// that is to be wrong.
func (f *fairPlayer) seen(op fairOp) (dead []reply.Place) {
	if op.Does != "evict" {
		return nil
	}
	for i, owner := range f.Queue[:min(op.Dead, len(f.Queue))] {
		p := reply.Place{Owner: owner}
		_, has := f.Deadlines[owner]
		if has && !slices.Contains(f.Queue[:i], owner) { // otherwise it leaves with the first place
			text, err := redis.String(f.conn.Do("ZSCORE", codec.TimeoutKey(f.l), owner))
			require.NoError(f.t, err)
			p.Deadline = text
		}
		if i+1 == op.Wrong {
			p = spoilt(p, op.How)
		}
		dead = append(dead, p)
	}
	return dead
}

func spoilt(p reply.Place, how int) reply.Place {
	switch {
	case how == anotherOwner:
		p.Owner += "0"
	case how == noDeadline && p.Deadline != "":
		p.Deadline = ""
	case how == anotherWriting && p.Deadline != "" && !strings.Contains(p.Deadline, "."):
		p.Deadline += ".0"
	default:
		p.Deadline = "1" + p.Deadline
	}
	return p
}

// disturb does what failures and other programs may do.
func (f *fairPlayer) disturb(does string, c fairCall) {
	deadlines := codec.TimeoutKey(f.l)
	switch does {
	case "expire":
		f.command("DEL", f.l)
	case "persist":
		f.command("PERSIST", f.l)
	case "intrude":
		f.command("HSET", f.l, c.Owner, 1)
	case "forget":
		f.command("DEL", protocol.LatchKey(f.l, c.Latch))
	case "loseDeadline":
		f.command("ZREM", deadlines, c.Owner)
	case "secondPlace":
		f.push(c.Owner)
	case "fraction":
		if _, has := f.Deadlines[c.Owner]; has {
			f.command("ZINCRBY", deadlines, "0.25", c.Owner)
		}
	case "orphan":
		f.set(c.Now, c.Owner)
	}
}
