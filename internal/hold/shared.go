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
)

type sharedKey struct {
	kind, key string
	owner     codec.Owner
}

var shared = engine.Slot[*engine.Registry[sharedKey, *ownership]]{
	Make: func(*engine.Engine) *engine.Registry[sharedKey, *ownership] {
		return &engine.Registry[sharedKey, *ownership]{}
	},
}

// joinShared returns the ownership of a shared owner. All of its holds in this client share it, so that none shortens
// another's lease. Each call must be paired with a call of quitShared.
func (l *Lock) joinShared(owner codec.Owner) *ownership {
	return shared.Of(l.Engine).Join(sharedKey{l.Kind.Name(), l.Kind.Key(), owner}, func() *ownership {
		return &ownership{lock: l, owner: owner, shared: true, final: &acquire.Request{Owner: l.Text(owner)}}
	})
}

func (o *ownership) quitShared() {
	shared.Of(o.lock.Engine).Leave(sharedKey{o.lock.Kind.Name(), o.lock.Kind.Key(), o.owner})
}

func (o *ownership) queuedWith() any {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.wait
}

// HandOver renews the lease, ends the hold without freeing the lock, and returns the owner, which another process can
// then use. If it fails, the hold continues.
func (h *Hold) HandOver() (codec.Owner, error) {
	o := h.ownership
	if o.lock.Owning == nil {
		return codec.Owner{}, fmt.Errorf("%w: a %s lock does not support sharing its owner", limits.ErrInvalid, o.lock.Kind.Name())
	}
	err := h.leaveIt(endHandedOver, func() error {
		for _, role := range []*ownership{o, o.base, o.otherRole()} {
			if role != nil && role.pendingReleases.Load() > 0 {
				return errUnresolved
			}
		}
		e := o.lock.Engine
		e.Join() // Shutdown waits for this
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

// alone sets the count to 1 for the only remaining hold, because inner holds that were lost may still be counted. The
// caller must have begun the change.
func (o *ownership) alone(lease any) error {
	o.mu.Lock()
	counted := o.reentered && !o.shared
	o.mu.Unlock()
	if !counted {
		return nil
	}
	return o.releaseTo(1, lease, o.lock.Engine.Command, nil)
}

// Resume initializes h, which must be zero, as a hold of the lock that the owner in terms already holds.
func (h *Hold) Resume(ctx context.Context, l *Lock, terms *Terms) error {
	if err := l.Engine.Enter(); err != nil {
		return err
	}
	defer l.Engine.Leave()
	l.Engine.Announce()
	l.Kind.Prepare(ctx)
	h.Init(l, terms, codec.Owner{}, nil)
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
		h.ownership.remove(h)
		return err
	}
	return nil
}

func (o *ownership) resume(ctx context.Context, lease any) (bool, error) {
	kind, fences := o.lock.Owning, o.lock.Owning.Fences()
	var answer any
	err := o.lock.Engine.Retry(ctx, func() (err error) {
		var at *engine.Attempt
		if fences {
			at = o.lock.Engine.Attempt()
			kind.Reenter(&at.Call, &acquire.Request{Owner: o.final.Owner, Lease: lease, Target: 1})
			at.Call.Urgent = true
		} else {
			at = o.fillRenewal(lease)
		}
		answer, err = at.Run(ctx, nil)
		return err
	})
	if fences && err == nil {
		return o.reenters(answer)
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

func (o *ownership) renewed(answer any, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	return o.lock.Kind.Renewal().Renewed(answer, 0, 1)
}

// UnlockAs lowers the owner's count by one. If the count reaches 0, the lock is freed.
func (l *Lock) UnlockAs(ctx context.Context, owner codec.Owner) error {
	if err := l.Engine.Enter(); err != nil {
		return err
	}
	defer l.Engine.Leave()
	l.Kind.Prepare(ctx)
	o := l.joinShared(owner)
	result := make(chan error, 1)
	if !l.Engine.GoBeforeClose(func() { defer o.quitShared(); result <- l.Untold(o.final, o.releaseShared(l.Engine.Command, nil)) }) {
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
