package oracle

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/redlatch/redlatch/codec"
)

// isAsContracted holds that our side of a read/write lock is exactly as the contracts of our
// scripts say, whatever Redisson's did. So a divergence need only say where they differ.
func isAsContracted(o *Outcome, seen *Seen) error {
	if seen != &o.Ours {
		return nil
	}
	c := &contract{at: o.At, state: maps.Clone(o.Prior), step: o.Step, shared: o.Shared}
	c.reply = c.play()
	if !o.near(c.reply, seen.Reply) {
		return fmt.Errorf("reply %v, want %v", seen.Reply, c.reply)
	}
	if !slices.Equal(c.messages, seen.Messages) {
		return fmt.Errorf("messages %q, want %q", seen.Messages, c.messages)
	}
	for _, name := range slices.Sorted(maps.Keys(o.either(c.state, seen.After))) {
		want, ok1 := c.state[name]
		got, ok2 := seen.After[name]
		late := got.Expires - want.Expires
		if ok1 != ok2 || !reflect.DeepEqual(want.Value, got.Value) || late < 0 || late > o.Elapsed {
			return fmt.Errorf("%q is %v (%v), want %v (%v)", name, got.Value, got.Expires, want.Value, want.Expires)
		}
	}
	return nil
}

func (o *Outcome) either(a, b State) State {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// near tells whether a reply is as wanted, but for times left, which are smaller when the
// server is asked later.
func (o *Outcome) near(want, got any) bool {
	a, ok1 := want.([]any)
	b, ok2 := got.([]any)
	if ok1 && ok2 && len(a) == 2 && len(b) == 2 && o.Step.Op.TellsTime {
		return o.sameTimeLeft(a[0], b[0]) && a[1] == b[1]
	}
	return o.sameTimeLeft(want, got)
}

// contract is what our scripts for read/write locks promise, on a state that is kept here.
type contract struct {
	at       int64
	state    State
	step     Step
	shared   bool
	reply    any
	messages []string
}

func (c *contract) play() any {
	c.messages = []string{}
	s := c.step
	if s.Op.act == rwRenew {
		return c.renew()
	}
	isFree := s.Op.act == rwFree
	if latch, ok := c.state[s.latch()]; isFree && c.shared && ok {
		return number(latch.Value)
	}
	if e, ok := c.state[c.name()]; ok && e.Type != "hash" {
		return wrongType
	}
	switch {
	case s.Op.act == rwAcquire:
		return c.acquire()
	case isFree:
		reply := c.release()
		if reply != nil && c.shared {
			c.set(s.latch(), fmt.Sprint(reply), latchFor)
		}
		return reply
	case s.Op.writes:
		return c.force(codec.ModeWrite, codec.MessageWriterLeft)
	}
	return c.force(codec.ModeRead, codec.MessageUnlock)
}

// number is the number that a string's value has.
func number(value any) int64 {
	text, _ := value.(string)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

func (c *contract) acquire() any {
	s, free := c.step, len(c.fields()) == 0
	writes := c.has(s.writer())
	if s.Target > 0 {
		if s.isWrite(rwAcquire) {
			return c.writeAgain()
		}
		return c.readAgain()
	}
	switch {
	case free && s.isWrite(rwAcquire):
		c.put(codec.ModeField, codec.ModeWrite)
	case free:
		c.put(codec.ModeField, codec.ModeRead)
	case c.mode() == codec.ModeWrite && !writes, c.mode() == codec.ModeRead && s.isWrite(rwAcquire):
		return c.refusal()
	case c.mode() != codec.ModeRead && c.mode() != codec.ModeWrite:
		return wrongType
	}
	n := c.holds(s.Field()) + 1
	c.put(s.Field(), decimal(n))
	if s.isRead(rwAcquire) {
		c.set(s.HoldKey(n), "1", s.Lease)
	}
	switch {
	case free:
		c.expire(c.name(), s.Lease)
	case s.isRead(rwAcquire):
		c.lastFor(s.Lease)
	default:
		c.raise(c.name(), s.Lease, false)
	}
	return nil
}

// refusal has the writer, if there is one.
func (c *contract) refusal() any {
	for field := range c.fields() {
		if _, isWriter := codec.WriterOf(field); isWriter && c.mode() == codec.ModeWrite {
			return []any{c.left(c.name()), field}
		}
	}
	return c.left(c.name())
}

// target is the count to arrive at, and before the one there is.
func (c *contract) target() (target, before int64) {
	before = c.holds(c.step.Field())
	switch isFree := c.step.Op.act == rwFree; {
	case !c.shared:
		return c.step.Target, before
	case isFree:
		return before - 1, before
	}
	return before + 1, before
}

func (c *contract) writeAgain() any {
	if !c.has(c.step.writer()) {
		return nil
	}
	target, before := c.target()
	c.put(c.step.writer(), decimal(max(target, before)))
	c.raise(c.name(), c.step.Lease, false)
	return int64(1)
}

func (c *contract) readAgain() any {
	s := c.step
	target, before := c.target()
	most := int64(-3)
	for k := range before {
		most = max(most, c.left(s.HoldKey(k+1)))
	}
	writes := c.mode() == codec.ModeWrite && c.has(s.writer())
	if !writes && (c.mode() != codec.ModeRead || most < -1) {
		return nil
	}
	most = max(most, s.Lease)
	c.put(s.Owner, decimal(max(target, before)))
	for k := range max(target, before) {
		c.set(s.HoldKey(k+1), "1", most)
	}
	c.raise(c.name(), most, false)
	return int64(1)
}

func (c *contract) release() any {
	s := c.step
	target, before := c.target()
	isMode := c.mode() == codec.ModeRead && s.isRead(rwFree) || c.mode() == codec.ModeWrite
	switch {
	case c.shared && c.left(c.name()) == -2:
		c.publish(map[bool]string{false: codec.MessageUnlock, true: codec.MessageWriterLeft}[s.Op.writes])
		return int64(2)
	case !c.has(s.Field()) || !isMode:
		return nil
	case target > 0 && target >= before:
		return int64(0)
	case target > 0:
		c.put(s.Field(), decimal(target))
	default:
		c.put(s.Field(), "")
	}
	if s.isWrite(rwFree) {
		return c.writeLeft(target)
	}
	most := int64(-2)
	for k := range before {
		most = max(most, c.left(s.HoldKey(k+1)))
	}
	for k := target + 1; k <= before; k++ {
		delete(c.state, s.HoldKey(k))
	}
	if c.shared {
		c.keep(target, most)
		return c.readLeft(target)
	}
	for k := range target {
		c.expire(s.HoldKey(k+1), s.Lease)
	}
	return c.readLeft(target)
}

func (c *contract) writeLeft(target int64) any {
	switch most := max(c.step.Lease, c.longest()); {
	case target > 0 && c.shared:
		c.raise(c.name(), most, false)
		return int64(0)
	case target > 0:
		c.expire(c.name(), most)
		return int64(0)
	}
	if most := c.longest(); most > 0 {
		c.put(codec.ModeField, codec.ModeRead)
		c.expire(c.name(), most)
	} else {
		delete(c.state, c.name())
	}
	c.publish(codec.MessageWriterLeft)
	return int64(1)
}

func (c *contract) readLeft(target int64) any {
	free := int64(0)
	switch most := c.longest(); {
	case c.mode() == codec.ModeWrite:
		c.raise(c.name(), most, false)
	case most > 0:
		c.expire(c.name(), most)
	default:
		delete(c.state, c.name())
		c.publish(codec.MessageUnlock)
		free = 1
	}
	if c.shared || target > 0 {
		return free
	}
	return int64(1)
}

func (c *contract) force(mode, message string) any {
	if c.mode() != mode {
		return int64(0)
	}
	delete(c.state, c.name())
	c.publish(message)
	return int64(1)
}

func (c *contract) renew() any {
	answers := []any{}
	all := c.step.Names
	for i := range all {
		c.step.Names = all[i : i+1]
		answers = append(answers, c.renewOne())
	}
	c.step.Names = all
	return answers
}

func (c *contract) renewOne() any {
	s, renewed := c.step, int64(0)
	if s.isWrite(rwRenew) && c.has(s.writer()) {
		c.raise(c.name(), s.Lease, true)
		renewed = 1
	}
	for k := range c.holds(s.Owner) {
		key := s.HoldKey(k + 1)
		if s.isRead(rwRenew) && c.left(key) > -2 {
			c.raise(key, s.Lease, true)
			renewed = 1
		}
	}
	if s.isRead(rwRenew) && renewed == 1 {
		c.lastFor(s.Lease)
	}
	return renewed
}

// isHoldKey tells whether a key keeps a hold of a reader alive, of an owner or, without one,
// of any.
func isHoldKey(key, name, owner string) bool {
	rest, ok := strings.CutPrefix(key, braced(name)+":")
	return ok && strings.HasPrefix(rest, owner) && strings.Contains(rest, ":rwlock_timeout:")
}
