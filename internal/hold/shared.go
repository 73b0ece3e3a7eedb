package hold

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/limits"
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

// HandOver renews the lease once, ends the hold without freeing the lock, and returns the
// owner, for another process that resumes it. On an error the hold goes on.
func (h *Hold) HandOver() (codec.Owner, error) {
	o := h.ownership
	if _, can := o.lock.Kind.(Shareable); !can {
		return codec.Owner{}, fmt.Errorf("%w: owners of a %s lock cannot be given to others", limits.ErrInvalid, o.lock.Kind.Name())
	}
	err := h.leaveIt(endHandedOver, func() error {
		if o.pendingReleases.Load() > 0 {
			return errUnresolved
		}
		e := o.lock.Engine
		e.Join() // a client that shuts down without losses lets its holds be handed over
		defer e.Leave()
		asked := time.Now()
		err := o.alone(h.lease.TTLArg)
		if err != nil {
			if errors.Is(err, engine.ErrLost) {
				err = h.gone()
				o.lose(asked)
			}
			return err
		}
		held, err := o.renewed(o.fillRenewal(h.lease.TTLArg).RunFor(e.Command, nil))
		if err == nil && !held {
			err = h.gone()
			o.lose(asked)
		}
		return err
	})
	if err != nil {
		return codec.Owner{}, err
	}
	return o.owner, nil
}

// alone brings the count to one for a hold that is the only one left: inner holds that were
// lost may still be counted. No other change of the count is under way.
func (o *ownership) alone(lease any) error {
	o.mu.Lock()
	counted := o.reentered && !o.shared
	o.mu.Unlock()
	if !counted {
		return nil
	}
	return o.releaseTo(1, lease, o.lock.Engine.Command, nil)
}

// Resume makes h, which is zero, a hold of the lock that the owner of the terms holds: it sets
// the lease anew, and renews it from now on.
func (h *Hold) Resume(ctx context.Context, l *Lock, terms *Terms) error {
	if err := l.Engine.Enter(); err != nil {
		return err
	}
	defer l.Engine.Leave()
	l.Engine.Announce()
	l.Prepare(ctx)
	h.Init(l, terms, nil)
	h.Asks(true)
	defer h.Asks(false)
	sent := time.Now()
	held, err := h.ownership.resume(ctx, h.Request().Lease)
	switch {
	case err != nil:
		h.Drop()
		return engine.WithEnd(ctx, err)
	case !held:
		h.Drop()
		return engine.ErrNotHeld
	}
	h.ownership.add(h, sent)
	if err := h.live(sent); err != nil {
		h.ownership.remove(h) // the lock is left as it was, to its owner
		return err
	}
	return nil
}

// resume sets the lease of a lock that the owner holds, and reports whether it does. A kind
// with tokens gives the next one.
func (o *ownership) resume(ctx context.Context, lease any) (bool, error) {
	kind, fences := o.lock.Kind.(Fencing)
	var answer any
	err := o.lock.Engine.Retry(ctx, func() (err error) {
		answer, err = o.fillResume(kind, lease).Run(ctx, nil)
		return err
	})
	if fences && err == nil {
		return o.reenters(kind, answer)
	}
	return o.renewed(answer, err)
}

func (o *ownership) fillRenewal(lease any) *engine.Attempt {
	at := o.lock.Engine.Attempt()
	o.lock.Kind.Renewal().Fill(&at.Call, 1, func(int) (key, owner, ttl any) {
		return o.lock.key, o.final.Owner, lease
	})
	at.Call.Urgent = true
	return at
}

// fillResume fills the call that resumes: a renewal for a kind without tokens, which is nil.
func (o *ownership) fillResume(kind Fencing, lease any) *engine.Attempt {
	if kind == nil {
		return o.fillRenewal(lease)
	}
	at := o.lock.Engine.Attempt()
	kind.Reenter(&at.Call, &acquire.Request{Owner: o.final.Owner, Lease: lease, Target: 1})
	at.Call.Urgent = true
	return at
}

func (o *ownership) renewed(answer any, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	return o.lock.Kind.Renewal().Renewed(answer, 0, 1)
}

// UnlockAs lowers the count of the owner of the terms by one, and frees the lock with the
// last.
func (l *Lock) UnlockAs(ctx context.Context, owner codec.Owner) error {
	if err := l.Engine.Enter(); err != nil {
		return err
	}
	defer l.Engine.Leave()
	l.Prepare(ctx)
	o := l.joinShared(owner)
	result := make(chan error, 1)
	if !l.Engine.Go(func() { defer o.quitShared(); result <- o.untold(o.releaseShared(l.Engine.Command, nil)) }) {
		o.quitShared()
		return engine.ErrClosed
	}
	var err error
	select {
	case err = <-result:
	case <-ctx.Done():
		err = fmt.Errorf("%w: %w", engine.ErrUncertain, engine.EndOf(ctx))
	}
	if errors.Is(err, engine.ErrLost) {
		return engine.ErrNotHeld
	}
	return err
}
