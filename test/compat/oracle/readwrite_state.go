package oracle

import (
	"maps"
	"strconv"

	"github.com/redlatch/redlatch/codec"
)

func (c *contract) name() string { return c.step.Names[0] }

func (c *contract) fields() map[string]string {
	fields, _ := c.state[c.name()].Value.(map[string]string)
	return fields
}

func (c *contract) mode() string { return c.fields()[codec.ModeField] }

func (c *contract) holds(field string) int64 {
	n, _ := strconv.ParseInt(c.fields()[field], 10, 64)
	return n
}

func (c *contract) has(field string) bool {
	_, ok := c.fields()[field]
	return ok
}

// put sets a field, or deletes it if the value is empty.
func (c *contract) put(field, value string) {
	e, ok := c.state[c.name()]
	if !ok {
		e = Entry{Type: "hash", Expires: never}
	}
	fields := maps.Clone(c.fields())
	if fields == nil {
		fields = map[string]string{}
	}
	fields[field] = value
	if value == "" {
		delete(fields, field)
	}
	e.Value = fields
	c.state[c.name()] = e
}

func (c *contract) set(key, value string, ttl int64) {
	c.state[key] = Entry{Type: "string", Value: value, Expires: never}
	c.expire(key, ttl)
}

func (c *contract) expire(key string, ttl int64) {
	e, ok := c.state[key]
	if !ok {
		return
	}
	e.Expires = c.at + ttl
	c.state[key] = e
	if ttl <= 0 {
		delete(c.state, key)
	}
}

// left is what a key has left: −1 for no end, −2 for no key.
func (c *contract) left(key string) int64 {
	e, ok := c.state[key]
	switch {
	case !ok:
		return -2
	case e.Expires == never:
		return never
	}
	return e.Expires - c.at
}

// raise gives a key, or one that never expires if mortal, more time.
func (c *contract) raise(key string, ttl int64, mortal bool) {
	if left := c.left(key); left < ttl && (left >= 0 || left == never && mortal) {
		c.expire(key, ttl)
	}
}

// lastFor gives a lock that is read more time. One that never expires stays so while it is
// written, and else gets what its longest read has.
func (c *contract) lastFor(ttl int64) {
	endless := c.left(c.name()) == never
	switch {
	case endless && c.mode() == codec.ModeWrite:
	case endless:
		c.expire(c.name(), max(ttl, c.longest()))
	default:
		c.raise(c.name(), ttl, false)
	}
}

// keep gives the first holds of an owner what the longest of all its holds had, and their
// lease at least, if one was alive.
func (c *contract) keep(holds, most int64) {
	if most == -2 {
		return
	}
	most = max(most, c.step.Lease)
	for k := range holds {
		if left := c.left(c.step.HoldKey(k + 1)); left != never && left < most {
			c.set(c.step.HoldKey(k+1), "1", most)
		}
	}
}

func (c *contract) publish(message string) {
	c.messages = append(c.messages, codec.ReadWriteChannel(c.name())+" "+message)
}

// longest is what the longest of all reads has left, 0 for none.
func (c *contract) longest() (most int64) {
	for field := range c.fields() {
		for k := range c.holds(field) {
			most = max(most, c.left(codec.HoldKey(c.name(), field, k+1)))
		}
	}
	return most
}
