package oracle

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
)

// poolAct is what an operation does to a semaphore or latch.
type poolAct int

const (
	_ poolAct = iota
	counterTake
	counterAdd
	counterSet
	counterSetFor
	counterDrain
	permitTake
	permitTakeForEver
	permitGive
	permitGiveAll
	permitExtend
	permitCountFree
	permitCountAll
	permitCountOut
	permitSet
	latchSet
	latchDown
	latchDelete
)

// isAsPromised holds that our side of a semaphore or latch is exactly as the contracts of our
// scripts say, whatever Redisson's did. So a divergence need only say where they differ.
func isAsPromised(o *Outcome, seen *Seen) error {
	if seen != &o.Ours {
		return nil
	}
	p := o.pool()
	reply, ok := p.play(o.Step)
	want := o.Prior
	if ok {
		want = p.state(o.Prior)
	} else {
		p.messages = []string{}
		if reply, ok = seen.Reply.(Failure); !ok {
			return fmt.Errorf("reply %v, want an error", seen.Reply)
		}
	}
	if !reflect.DeepEqual(reply, seen.Reply) {
		return fmt.Errorf("reply %v, want %v", seen.Reply, reply)
	}
	if !slices.Equal(p.messages, seen.Messages) {
		return fmt.Errorf("messages %q, want %q", seen.Messages, p.messages)
	}
	return o.isState(want, seen.After)
}

// isState holds that a state is as wanted, but for times that were set while the step ran.
func (o *Outcome) isState(want, got State) error {
	for _, name := range slices.Sorted(maps.Keys(o.either(want, got))) {
		a, ok1 := want[name]
		b, ok2 := got[name]
		late := b.Expires - a.Expires
		if ok1 != ok2 || !reflect.DeepEqual(a.Value, b.Value) || max(late, -late) > o.Elapsed {
			return fmt.Errorf("%q is %v (%v), want %v (%v)", name, b.Value, b.Expires, a.Value, a.Expires)
		}
	}
	return nil
}

// pool is a counter, and the permits that are out, as our scripts see them.
type pool struct {
	at       int64 // the server's clock
	count    string
	ends     string
	channel  string
	there    bool // is the counter?
	isNumber bool // a counter that is there
	isText   bool // a counter that is there
	free     int64
	expires  int64
	out      map[string]float64
	outEnds  int64 // when the permits' key expires
	isSet    bool  // are the permits a sorted set, or not there?
	messages []string
}

// pool is that of the step's semaphore before the step.
func (o *Outcome) pool() *pool {
	p := &pool{at: o.At, expires: never, outEnds: never, isSet: true, isNumber: true, isText: true, messages: []string{}}
	p.count, p.ends, p.channel = o.Step.permitNames()
	if o.Step.Op.does >= latchSet {
		p.channel = latchKeys(o.Step)[1]
	}
	if e, ok := o.Prior[p.count]; ok {
		text, isText := e.Value.(string)
		n, err := strconv.ParseInt(text, 10, 64)
		p.there, p.isText, p.isNumber, p.free, p.expires = true, isText, isText && err == nil, n, e.Expires
	}
	if e, ok := o.Prior[p.ends]; ok {
		out, isSet := e.Value.(map[string]float64)
		p.isSet, p.out, p.outEnds = isSet, maps.Clone(out), e.Expires
	}
	return p
}

// state is the prior one with what the pool has become.
func (p *pool) state(prior State) State {
	s := maps.Clone(prior)
	if p.isNumber {
		delete(s, p.count)
		if p.there {
			s[p.count] = textOf(p.expires, decimal(p.free))
		}
	}
	if p.isSet {
		delete(s, p.ends)
		if len(p.out) > 0 {
			s[p.ends] = Entry{Type: "zset", Value: p.out, Expires: p.outEnds}
		}
	}
	return s
}

// play does the step and returns its reply; it is not ok when the script fails, and then nothing
// has changed.
func (p *pool) play(s Step) (reply any, ok bool) {
	does := s.Op.does
	switch does {
	case counterSet, counterSetFor:
		return p.trySet(s)
	case permitExtend:
		return p.renew(s), true
	case latchSet:
		return p.latchSet(s)
	}
	isPermits := does >= permitTake && does <= permitCountOut || does == permitSet && p.there
	if !p.isNumber || isPermits && !p.isSet {
		return nil, false
	}
	switch does {
	case counterTake:
		return p.take(s), true
	case counterAdd:
		return p.add(s)
	case counterDrain:
		n := p.free
		p.free = 0
		return n, true
	case permitTake:
		return p.acquire(s), true
	case permitGive, permitGiveAll:
		return p.release(s), true
	case permitSet:
		return p.set(s), true
	case latchDown:
		return nil, p.countDown()
	case latchDelete:
		return p.latchDelete(), true
	}
	return p.counted(s), true
}

// tell is what waiters are told of permits that became free.
func (p *pool) tell(freed int64) {
	if freed <= 0 || p.free <= 0 {
		return
	}
	for range min(freed, p.free, 100) - 1 {
		p.publish("1")
	}
	p.publish(decimal(p.free))
}

func (p *pool) publish(payload string) {
	p.messages = append(p.messages, p.channel+" "+payload)
}

func (p *pool) trySet(s Step) (reply any, ok bool) {
	switch {
	case !p.isText:
		return nil, false
	case p.there:
		return int64(0), true
	}
	p.there, p.free = true, s.Permits
	if s.Op.does == counterSetFor {
		p.expires = p.at + s.Lease
	}
	p.tell(p.free)
	return int64(1), true
}

func (p *pool) take(s Step) any {
	switch {
	case !p.there:
		return []any{int64(-1)}
	case p.free < s.Permits:
		return []any{int64(-1), p.free}
	}
	p.free -= s.Permits
	return p.free
}

func (p *pool) add(s Step) (reply any, ok bool) {
	if s.Permits > 0 && p.free > math.MaxInt64-s.Permits {
		return nil, false
	}
	p.there, p.free = true, p.free+s.Permits
	p.tell(s.Permits)
	return p.free, true
}

// over are the permits whose lease is over.
func (p *pool) over(now int64) (ids []string) {
	for id, end := range p.out {
		if end >= 0 && end <= float64(now) {
			ids = append(ids, id)
		}
	}
	return ids
}

func (p *pool) acquire(s Step) any {
	over := p.over(s.Now)
	for _, id := range over {
		delete(p.out, id)
		p.there, p.free = true, p.free+1
	}
	freed, wanted := int64(len(over)), int64(len(s.IDs))
	if !p.there || p.free < wanted {
		p.tell(freed)
		left := []any{p.left(s.Now)}
		if p.there {
			left = append(left, p.free, p.free+int64(len(p.out)))
		}
		return left
	}
	p.free -= wanted
	if p.out == nil {
		p.out = map[string]float64{}
	}
	if len(p.out) == 0 {
		p.outEnds = never
	}
	for _, id := range s.rawIDs() {
		p.out[id] = float64(s.Now + s.Lease)
	}
	if p.expires != never {
		p.outEnds = p.expires
	}
	p.tell(freed)
	return p.free
}

// left is what the permit that ends first has left, -1 when none ever ends.
func (p *pool) left(now int64) int64 {
	if len(p.out) == 0 {
		return -1
	}
	first := slices.Min(slices.Collect(maps.Values(p.out)))
	if first >= noEnd {
		return -1
	}
	return max(0, int64(first)-now)
}

func (p *pool) release(s Step) any {
	var freed, over int64
	for _, id := range s.rawIDs() {
		end, ok := p.out[id]
		if !ok {
			continue
		}
		delete(p.out, id)
		freed++
		if end <= float64(s.Now) {
			over++
		}
	}
	if freed > 0 {
		p.there, p.free = true, p.free+freed
		p.tell(freed)
	}
	return []any{freed, over}
}

func (p *pool) renew(s Step) any {
	for _, id := range s.rawIDs() {
		if _, ok := p.out[id]; !ok || !p.isSet {
			return []any{int64(0)}
		}
	}
	for _, id := range s.rawIDs() {
		p.out[id] = max(p.out[id], float64(s.Now+s.Lease))
	}
	return []any{int64(1)}
}

func (p *pool) counted(s Step) any {
	there, over := int64(0), int64(len(p.over(s.Now)))
	if p.there {
		there = 1
	}
	return []any{there, p.free + over, int64(len(p.out)) - over}
}

func (p *pool) set(s Step) any {
	more := s.Permits
	if p.there {
		more -= p.free + int64(len(p.out))
	}
	p.there, p.free = true, p.free+more
	p.tell(more)
	return p.free
}

func (p *pool) latchSet(s Step) (reply any, ok bool) {
	switch {
	case !p.isText:
		return nil, false
	case p.there:
		return int64(0), true
	}
	p.there, p.free = true, s.Permits
	p.publish(latchClosed)
	return int64(1), true
}

func (p *pool) countDown() bool {
	if p.free == math.MinInt64 {
		return false
	}
	p.free--
	p.there = p.free > 0
	if p.free == 0 {
		p.publish(latchOpen)
	}
	return true
}

func (p *pool) latchDelete() any {
	if !p.there {
		return int64(0)
	}
	p.there = false
	p.publish(latchClosed)
	return int64(1)
}
