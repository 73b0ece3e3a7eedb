package luasrc

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// The owners of the stories, all of one client.
const (
	a1  = "11111111-1111-1111-1111-111111111111:1"
	a2  = "11111111-1111-1111-1111-111111111111:2"
	a3  = "11111111-1111-1111-1111-111111111111:3"
	a4  = "11111111-1111-1111-1111-111111111111:4"
	a5  = "11111111-1111-1111-1111-111111111111:5"
	a9  = "11111111-1111-1111-1111-111111111111:9"
	a51 = "11111111-1111-1111-1111-111111111111:51"
)

const (
	t0        = int64(1795224888771) // when the stories begin
	fairWait  = int64(300000)        // the wait of an owner that sets none
	fairKeep  = int64(15000)         // the keep of heartbeats
	fairLease = 30000                // the lease unless a call has another
	none      = int64(0)             // the deadline of an entry without one
)

// fairStory is a sequence of calls on a server and on the model.
type fairStory struct {
	name string
	tell func(f *fairPlayer)
}

// fairPlayer plays calls on a server and on the model. Each call must have the model's reply, send the
// model's messages and leave the model's keys. After the first difference it does nothing.
type fairPlayer struct {
	*stage
	*fairModel
	l       string // the lock
	publish string
	err     error
	steps   int
}

func (s *stage) newFairPlayer() *fairPlayer {
	return &fairPlayer{stage: s, fairModel: newFairModel(), l: redistest.Key(s.t), publish: "PUBLISH"}
}

func (s *stage) tellFair(story fairStory) error {
	s.t.Helper()
	f := s.newFairPlayer()
	story.tell(f)
	if f.err != nil {
		f.messagesSince() // the next story must not find them
		return fmt.Errorf("%s: %w", story.name, f.err)
	}
	return nil
}

// fairScripts are the scripts, with the model of each.
var fairScripts = map[string]struct {
	fill  func(l *Fair, call *transport.Call, c fairCall)
	model func(m *fairModel, c fairCall) any
}{
	"try": {func(l *Fair, call *transport.Call, c fairCall) {
		l.Try(call, c.Now, c.Owner, c.Wait, c.Lease)
		withoutDetails(call)
	}, (*fairModel).Try},
	"acquire": {func(l *Fair, call *transport.Call, c fairCall) {
		l.Acquire(call, c.Now, c.Owner, c.Wait, c.Lease)
		withoutDetails(call)
	}, (*fairModel).Acquire},
	"reenter": {func(l *Fair, call *transport.Call, c fairCall) {
		l.Reenter(call, c.Now, c.Owner, c.Lease, c.Target)
	}, (*fairModel).Reenter},
	"release": {func(l *Fair, call *transport.Call, c fairCall) {
		l.Release(call, c.Now, c.Owner, c.Lease, c.Target)
	}, (*fairModel).Release},
	"releaseShared": {func(l *Fair, call *transport.Call, c fairCall) {
		name, _ := l.Key.(string)
		l.ReleaseShared(call, protocol.LatchKey(name, c.Latch), c.Now, c.Owner, c.Lease)
	}, (*fairModel).ReleaseShared},
	"force": {func(l *Fair, call *transport.Call, c fairCall) { l.ForceRelease(call, c.Now) }, (*fairModel).Force},
	"giveUp": {func(l *Fair, call *transport.Call, c fairCall) {
		l.GiveUp(call, c.Now, c.Owner, c.Wait)
		for _, more := range c.More {
			l.GiveUp(call, c.Now, more.owner, more.wait)
		}
	}, (*fairModel).GiveUp},
	"heartbeat": {func(l *Fair, call *transport.Call, c fairCall) {
		fillBeat(l, call, c.Now, Beat{Keep: c.Keep, FairWait: c.Fair, Window: c.Window}, c.Mine, c.Others)
	}, (*fairModel).Heartbeat},
	"evict": {func(l *Fair, call *transport.Call, c fairCall) { l.Evict(call, c.Now, c.Keep, c.Dead) }, (*fairModel).Evict},
	"nudge": {func(l *Fair, call *transport.Call, c fairCall) { l.Nudge(call, c.Owner) }, (*fairModel).Nudge},
}

func withoutDetails(c *transport.Call) { c.Args = c.Args[:len(c.Args)-1] }

func fillBeat(l *Fair, c *transport.Call, now int64, b Beat, mine []waiter, others []reply.Other) {
	b.Waiters = len(mine)
	l.Heartbeat(c, now, b)
	for _, w := range mine {
		AddWaiter(c, w.owner, w.wait)
	}
	for _, o := range others {
		AddOther(c, o)
	}
}

func fairLock(l, publish string) *Fair {
	return &Fair{
		Key: l, Queue: codec.QueueKey(l), Timeouts: codec.TimeoutKey(l), Channel: codec.LockChannel(l), Publish: publish,
	}
}

func (f *fairPlayer) call(does string, c fairCall) *fairPlayer {
	if f.err != nil {
		return f
	}
	f.steps++
	script := fairScripts[does]
	got, err := f.run(filled(func(call *transport.Call) { script.fill(fairLock(f.l, f.publish), call, c) }))
	if err == nil {
		c.Left, c.remains = leftIn(got), f.anyDeadline(does)
		want := script.model(f.fairModel, c)
		err = errors.Join(differs("reply", want, replyOf(got, nil, want)), f.leftDiffers(f.l, f.due(), f.state()))
	}
	if err != nil {
		f.err = fmt.Errorf("call %d, %s %+v: %w", f.steps, does, c, err)
	}
	return f
}

func (f *fairPlayer) due() (due []string) {
	for _, owner := range f.Notified {
		if f.publish == "PUBLISH" { // the listener is not a shard subscriber
			due = append(due, protocol.OwnerChannel(f.l, owner)+" "+protocol.MessageUnlock)
		}
	}
	f.Notified = nil
	return due
}

// leftIn takes a reply that can be the lock's remaining time for it: only the server knows.
func leftIn(reply any) func(most int64) int64 {
	return func(most int64) int64 {
		if ms, ok := reply.(int64); ok && about(most).covers(ms) {
			return ms
		}
		return most
	}
}

// anyDeadline returns a deadline on the server after an eviction, which depends on the lock's remaining
// time.
func (f *fairPlayer) anyDeadline(does string) *deadline {
	if does != "evict" {
		return nil
	}
	first, err := redis.Values(f.conn.Do("ZRANGE", codec.TimeoutKey(f.l), 0, 0, "WITHSCORES"))
	require.NoError(f.t, err)
	if len(first) == 0 {
		return nil
	}
	var d deadline
	_, err = redis.Scan(first, &d.owner, &d.at)
	require.NoError(f.t, err)
	return &d
}

func (f *fairPlayer) state() map[string]any {
	all := map[string]any{}
	if !f.IsFree() {
		counts := map[string]string{}
		for owner, count := range f.Counts {
			counts[owner] = strconv.FormatInt(count, 10)
		}
		all[f.l] = held{counts, f.PTTL}
	}
	if len(f.Queue) > 0 {
		all[codec.QueueKey(f.l)] = queue(slices.Clone(f.Queue))
	}
	if len(f.Deadlines) > 0 {
		all[codec.TimeoutKey(f.l)] = timeouts(maps.Clone(f.Deadlines))
	}
	for id, outcome := range f.Latches {
		maps.Copy(all, latched(protocol.LatchKey(f.l, id), outcome))
	}
	return all
}

// command runs a plain command, as a failure or another program may, and does the same to the model.
func (f *fairPlayer) command(name string, args ...any) {
	if f.err != nil {
		return
	}
	_, err := f.run(command(name, args...))
	require.NoError(f.t, err, name)
	texts := make([]string, len(args))
	for i, arg := range args {
		texts[i] = fmt.Sprint(arg)
	}
	f.apply(name, texts[0], texts[1:])
}

func (f *fairPlayer) apply(name, key string, args []string) {
	number := func(text string) float64 {
		n, err := strconv.ParseFloat(text, 64)
		require.NoError(f.t, err)
		return n
	}
	switch name {
	case "DEL":
		for _, k := range append(args, key) {
			f.forget(k)
		}
	case "HSET":
		if f.IsFree() {
			f.PTTL = -1
		}
		for pair := range slices.Chunk(args, 2) {
			f.Counts[pair[0]] = int64(number(pair[1]))
		}
	case "PERSIST":
		f.PTTL = -1
	case "PEXPIRE":
		if key == f.l {
			f.PTTL = int64(number(args[0]))
		}
	case "RPUSH":
		f.Queue = append(f.Queue, args...)
	case "LPUSH":
		f.Queue = append(args, f.Queue...)
	case "LPOP":
		f.Queue = f.Queue[1:]
	case "ZADD":
		for pair := range slices.Chunk(args, 2) {
			f.Deadlines[pair[1]] = number(pair[0])
		}
	case "ZINCRBY":
		f.Deadlines[args[1]] += number(args[0])
	case "ZREM":
		delete(f.Deadlines, args[0])
	default:
		f.t.Fatal("no model of " + name)
	}
}

func (f *fairPlayer) forget(key string) {
	switch key {
	case f.l:
		clear(f.Counts)
	case codec.QueueKey(f.l):
		f.Queue = nil
	case codec.TimeoutKey(f.l):
		clear(f.Deadlines)
	default:
		delete(f.Latches, key[strings.LastIndexByte(key, ':')+1:])
	}
}

func (f *fairPlayer) clear() { f.command("DEL", codec.QueueKey(f.l), codec.TimeoutKey(f.l)) }

// push queues owners without a deadline, set gives deadlines without a place.
func (f *fairPlayer) push(owners ...any) {
	f.command("RPUSH", append([]any{codec.QueueKey(f.l)}, owners...)...)
}

func (f *fairPlayer) set(pairs ...any) {
	f.command("ZADD", append([]any{codec.TimeoutKey(f.l)}, pairs...)...)
}

// hold gives the lock to a9, without a lease.
func (f *fairPlayer) hold() { f.command("HSET", f.l, a9, "1") }

type entry struct {
	owner    string
	deadline int64
}

// in returns a waiter with a deadline this many milliseconds after t0.
func in(owner string, ms int64) entry { return entry{owner, t0 + ms} }
func (f *fairPlayer) enqueue(all ...entry) {
	var owners, deadlines []any
	for _, e := range all {
		owners, deadlines = append(owners, e.owner), append(deadlines, e.deadline, e.owner)
	}
	f.push(owners...)
	f.set(deadlines...)
}

// leaves checks the model, with which the server agrees: it must have these keys.
func (f *fairPlayer) leaves(states ...map[string]any) {
	if f.err == nil {
		f.err = differs("state", also(states...), f.state())
	}
}

// entries is a state of a queue whose places and deadlines agree.
func (f *fairPlayer) entries(all ...entry) map[string]any {
	q, t := queue{}, timeouts{}
	for _, e := range all {
		q, t[e.owner] = append(q, e.owner), float64(e.deadline)
	}
	return map[string]any{codec.QueueKey(f.l): q, codec.TimeoutKey(f.l): t}
}

// costs checks the commands of the last call, where the server shows them.
func (f *fairPlayer) costs(calls string) {
	if f.err == nil && f.monitor != nil {
		f.err = differs("commands", calls, f.calls)
	}
}

func (f *fairPlayer) try(owner string, now, wait int64) *fairPlayer {
	return f.call("try", fairCall{Owner: owner, Now: t0 + now, Wait: wait, Lease: fairLease})
}

func (f *fairPlayer) acquire(owner string, now, wait int64) *fairPlayer {
	return f.call("acquire", fairCall{Owner: owner, Now: t0 + now, Wait: wait, Lease: fairLease})
}

func (f *fairPlayer) reenter(owner string, lease, target int64) *fairPlayer {
	return f.call("reenter", fairCall{Owner: owner, Now: t0, Lease: lease, Target: target})
}

func (f *fairPlayer) release(owner string, now, target int64) *fairPlayer {
	return f.call("release", fairCall{Owner: owner, Now: t0 + now, Lease: fairLease, Target: target})
}

func (f *fairPlayer) releaseShared(owner string, now int64) *fairPlayer {
	return f.call("releaseShared", fairCall{Owner: owner, Now: t0 + now, Lease: fairLease, Latch: requestID})
}

func (f *fairPlayer) force(now int64) *fairPlayer { return f.call("force", fairCall{Now: t0 + now}) }

func (f *fairPlayer) giveUp(owner string, now, wait int64, more ...waiter) *fairPlayer {
	return f.call("giveUp", fairCall{Owner: owner, Now: t0 + now, Wait: wait, More: more})
}

func (f *fairPlayer) beat(now int64, others []reply.Other, window int, mine ...waiter) *fairPlayer {
	return f.call("heartbeat", fairCall{Now: t0 + now, Keep: fairKeep, Fair: fairWait, Window: window, Mine: mine, Others: others})
}

// living is one living waiter of another process.
func living(owner string) []reply.Other { return []reply.Other{{Owner: owner, Living: true}} }

func (f *fairPlayer) evict(dead ...entry) *fairPlayer {
	var pairs []string
	for _, e := range dead {
		text := ""
		if e.deadline != none {
			text = strconv.FormatInt(e.deadline, 10)
		}
		pairs = append(pairs, e.owner, text)
	}
	return f.evictAs(pairs...)
}

func (f *fairPlayer) evictAs(pairs ...string) *fairPlayer {
	c := fairCall{Now: t0, Keep: fairKeep}
	for pair := range slices.Chunk(pairs, 2) {
		c.Dead = append(c.Dead, reply.Place{Owner: pair[0], Deadline: pair[1]})
	}
	return f.call("evict", c)
}

func (f *fairPlayer) nudge(owner string) *fairPlayer { return f.call("nudge", fairCall{Owner: owner}) }
