package rmultilock

import (
	"errors"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// claim is what an attempt acquires for: the holds of all locks, of one owner. The replicas of all
// steps are waited for together.
type claim struct {
	acquire.BareClaim
	batch   *batch
	owner   sameOwner
	request acquire.Request
	holds   []*hold.Hold
}

var _ acquire.Claim = (*claim)(nil)

func (c *claim) ID() codec.Owner           { return c.owner.owner }
func (c *claim) Request() *acquire.Request { return &c.request }

// Grant is part of acquire.Claim. From here on the group has the holds, and gives them back.
func (c *claim) Grant(sent time.Time, o acquire.Outcome) error {
	for i, h := range c.holds {
		if err := h.Grant(sent, o); err != nil {
			c.Disown() // also those that came before, which their unlock finds gone
			if i > 0 {
				c.batch.hold.group.AddTogether(c.holds[:i])
			}
			return err
		}
	}
	c.batch.hold.group.AddTogether(c.holds)
	return nil
}

func (c *claim) Disown() { c.batch.Engine.Resolve(c.InDoubt()) }

func (c *claim) InDoubt() *engine.InDoubt {
	return undo(c.batch.locks, &c.batch.scripts, c.owner.text, c.batch.asked.TTL)
}

// Late is part of engine.Resolver: the reply came when the caller had left.
func (c *claim) Late(answer any, err error) {
	if refused := err == nil && answer != nil; !refused && !errors.Is(err, engine.ErrNotSent) {
		c.Disown()
	}
}

// undo is what frees plain locks of one slot if the owner has them, for a lease.
func undo(locks []*hold.Lock, scripts *luasrc.All, owner any, lease time.Duration) *engine.InDoubt {
	text, _ := owner.(string) // it is one
	d := &engine.InDoubt{Name: locks[0].Name, Owner: text, Lease: lease}
	d.Undo = func(run engine.Run) (bool, error) {
		answer, err := run(func(c *transport.Call) { scripts.Release(c, owner); c.Urgent = true })
		if err != nil {
			return false, err
		}
		freed, err := freedOf(answer, len(locks))
		for _, f := range freed {
			if f {
				return true, err
			}
		}
		return false, err
	}
	return d
}
