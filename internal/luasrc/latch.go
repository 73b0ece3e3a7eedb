package luasrc

import (
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// The scripts of the count-down latch. KEYS, ARGV, replies, effects and messages stand in the
// header of each file. [Latch] fills calls of them.
var (
	// LatchSet sets the count of a latch that has none.
	LatchSet = guarded("latch_set")

	// LatchCountDown lowers the count of a latch by one. It must not be repeated.
	LatchCountDown = guarded("latch_count_down")

	// LatchDelete deletes the count of a latch.
	LatchDelete = guarded("latch_delete")
)

// Latch fills calls of the scripts for one count-down latch, as [Plain] does.
type Latch struct {
	// Key and Channel are the names of the latch and of its channel, both strings.
	Key, Channel any
	// Publish is PUBLISH or SPUBLISH.
	Publish any
}

// Set fills c with a call of [LatchSet].
func (l *Latch) Set(c *transport.Call, count int64) {
	c.Script, c.NumKeys = LatchSet, 2
	c.Args = append(c.Args, l.Key, l.Channel, count, l.Publish, codec.MessageClosed)
}

// CountDown fills c with a call of [LatchCountDown].
func (l *Latch) CountDown(c *transport.Call) {
	c.Script, c.NumKeys = LatchCountDown, 2
	c.Args = append(c.Args, l.Key, l.Channel, l.Publish, codec.MessageOpened)
}

// Delete fills c with a call of [LatchDelete].
func (l *Latch) Delete(c *transport.Call) {
	c.Script, c.NumKeys = LatchDelete, 2
	c.Args = append(c.Args, l.Key, l.Channel, l.Publish, codec.MessageClosed)
}
