package hold

import (
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

// sharedKey is what the holds of one client that are one ownership have in common: the lock,
// and an owner that others may use, too.
type sharedKey struct {
	kind, key string
	owner     codec.Owner
}

// shared are the ownerships of a client's shared owners.
var shared = engine.Slot[*engine.Registry[sharedKey, *ownership]]{
	Make: func(*engine.Engine) *engine.Registry[sharedKey, *ownership] {
		return &engine.Registry[sharedKey, *ownership]{}
	},
}

// joinShared returns the ownership of an owner that others may use, too. All of one client's
// holds under that owner share it, however they came about, so that none shortens the lease
// that another counts on. Each join needs a quitShared.
func (l *Lock) joinShared(owner codec.Owner) *ownership {
	return shared.Of(l.Engine).Join(sharedKey{l.Kind.Name(), l.Kind.Key(), owner}, func() *ownership {
		return &ownership{lock: l, owner: owner, shared: true, final: &acquire.Request{Owner: l.Text(owner)}}
	})
}

func (o *ownership) quitShared() {
	shared.Of(o.lock.Engine).Leave(sharedKey{o.lock.Kind.Name(), o.lock.Kind.Key(), o.owner})
}

// releaseLater goes on with a shared owner's release that Redis has not answered. The latch
// makes that harmless, for as long as it lives.
func (o *ownership) releaseLater(fill func(*transport.Call), forget func()) {
	e := o.lock.Engine
	e.Go(func() {
		err := o.persist(latchSafe, nil, false, fill)
		if unresolved(err) {
			e.Logger.Warn("redlatch: release given up, the lock may stay until its lease ends",
				"lock", o.lock.Name, "owner", o.final.Owner, "error", err)
			return
		}
		forget()
	})
}

// latchSafe is how long a release may be repeated under the protection of its latch.
const latchSafe = 10 * time.Second

// queueWith remembers the wait with which the server has queued the owner: the callers of one
// owner have one place, and leave it with the wait that it has.
func (o *ownership) queueWith(wait any) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wait = wait
}

func (o *ownership) queuedWith() any {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.wait
}

// putSubscription leaves the owner and its subscription to the next acquisition of the lock,
// if it was freed and nothing about the owner can be under way any more, on either side:
//
//   - every attempt for it was answered, so none can queue it or take the lock later;
//   - it did not give up, and no call in doubt is about it;
//   - it never was renewed, so no renewal can shorten the next lease;
//   - it was not entered again, handed over or given away, and the hold was not asked for it,
//     so no other code can act as it;
//   - its release was sent once, and the server said that this freed the lock.
//
// What may still come is harmless: a heartbeat, here or of others, only puts a place off; an
// eviction needs the deadline that was seen, and costs a place; a message makes the next one
// ask once in vain.
func (h *Hold) putSubscription() {
	o := h.ownership
	if o.subscription == nil {
		return
	}
	if h.result != nil || o.notReusable.Load() || o.lock.Engine.Watchdog.Tried(&h.lease) {
		o.closeSubscription()
		return
	}
	o.subscription.Put()
}

// closeSubscription ends the subscription that was left with the hold, if there is one.
func (o *ownership) closeSubscription() {
	if o.subscription != nil {
		o.subscription.Close()
	}
}
