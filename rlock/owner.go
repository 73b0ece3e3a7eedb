package rlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
)

// HandOver gives the lock to another goroutine, process or language: it renews
// the lease once, ends this hold without freeing the lock, and returns the owner,
// which the other side gives to Resume or UnlockAs, or to Redisson's
// unlockAsync(threadId) if it can name it. The hold's contexts end with
// ErrHandedOver, and Unlock does nothing then. The other side has the lease to
// take over.
//
// When Redis does not answer, the hold goes on and the error says why. ErrEntered
// says that the lock is entered more than once, ErrUncertain that an earlier unlock
// of an inner hold had lost its reply: arriving late, it could take the lock from the
// other side. It sends one EVALSHA, two if the lock was ever re-entered.
func (h *Hold) HandOver() (codec.Owner, error) {
	err := h.leaveIt("hand-over", endHandedOver, func() error {
		if h.tenure.strays.Load() > 0 {
			return errUnsettled
		}
		e := h.tenure.lock.engine
		e.Join() // a client that shuts down in peace lets its holds be handed over
		defer e.Leave()
		err := h.tenure.alone(h.lease.TTLArg)
		if err != nil {
			if errors.Is(err, redlatch.ErrLost) {
				h.tenure.lose()
			}
			return err
		}
		held, err := h.tenure.renewed(h.tenure.fillRenewal(h.lease.TTLArg).RunFor(e.Command, nil))
		if err == nil && !held {
			h.tenure.lose()
			err = redlatch.ErrLost
		}
		return err
	})
	if err != nil {
		return codec.Owner{}, err
	}
	return h.tenure.owner, nil
}

// alone brings the count to one for a hold that is the only one left: inner holds
// that were lost may still be counted. The caller has the turn.
func (t *tenure) alone(lease any) error {
	t.mu.Lock()
	counted := t.reentered && !t.shared
	t.mu.Unlock()
	if !counted {
		return nil
	}
	acq := protocol.Acquisition{Owner: t.acq.Owner, Lease: lease}
	return t.release(&acq, 1, t.lock.engine.Command)
}

// Resume takes over the lock that owner holds, from a hold that was handed over
// or from another process or language that holds it as owner: it sets the lease
// anew, renews it from now on, and returns a hold whose Unlock lowers owner's
// count by one. Options are those of Lock about the lease; WithWait gives
// ErrBadWait. ErrNotHeld says that
// owner does not hold the lock. It sends one EVALSHA.
//
// The side that had the lock before should have let go with HandOver. Otherwise
// both are one owner and both renew; its hold is lost within a renewal period
// after the lock is freed here.
func (l *Lock) Resume(ctx context.Context, owner codec.Owner, opts ...Option) (*Hold, error) {
	a := acquisition{lock: l, op: "resume", began: time.Now()}
	hold, err := l.resume(ctx, append(slices.Clone(opts), WithOwner(owner)))
	err = l.wrap(a.op, owner, engine.Explain(err))
	a.observed(hold, err)
	return hold, err
}

func (l *Lock) resume(ctx context.Context, opts []Option) (*Hold, error) {
	set, err := l.check(ctx, opts)
	if err != nil {
		return nil, err
	}
	if set.bounded {
		return nil, fmt.Errorf("%w: Resume does not wait", codec.ErrBadWait)
	}
	if err := l.engine.Enter(); err != nil {
		return nil, err
	}
	defer l.engine.Leave()
	l.engine.Announce()
	l.keepTime(ctx)
	h := newHold(l, &set)
	sent := time.Now()
	held, err := h.tenure.renewOnce(ctx, h.asked().Lease)
	switch {
	case err != nil:
		h.drop()
		return nil, withEnd(ctx, err)
	case !held:
		h.drop()
		return nil, redlatch.ErrNotHeld
	}
	h.tenure.enter(h)
	if err := h.live(sent); err != nil {
		h.tenure.leave(h) // the lock is left as it was, to its owner
		return nil, err
	}
	return h, nil
}

// check is what can be checked before something is sent.
func (l *Lock) check(ctx context.Context, opts []Option) (settings, error) {
	engine.NeedContext(ctx)
	if l.err != nil {
		return settings{}, l.err
	}
	if ctx.Err() != nil {
		return settings{}, fmt.Errorf("%w: %w", redlatch.ErrNotSent, engine.EndOf(ctx))
	}
	return configure(l.engine, opts)
}

// renewOnce sets the lease of a lock that the owner holds, and reports whether it
// does.
func (t *tenure) renewOnce(ctx context.Context, lease any) (bool, error) {
	e := t.lock.engine
	var reply any
	err := e.Retry(ctx, func() (err error) {
		reply, err = t.fillRenewal(lease).Run(ctx, nil)
		return err
	})
	return t.renewed(reply, err)
}

func (t *tenure) fillRenewal(lease any) *engine.Attempt {
	at := t.lock.engine.Attempt()
	luasrc.FillRenew(&at.Call, 1, func(int) (key, owner, ttl any) { return t.lock.proto.Key(), t.acq.Owner, lease })
	at.Call.Urgent = true
	return at
}

func (t *tenure) renewed(answer any, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	return reply.RenewedAt(answer, 0, 1)
}

// UnlockAs lowers owner's count by one, and frees the lock with the last, as
// Redisson's unlock does, byte for byte. It is for owners that were handed over;
// a hold of this process's is given up with Unlock. ErrNotHeld says that owner
// does not hold the lock, ErrUncertain that the reply was lost or that ctx ended
// before it came; the release goes on then, for one command timeout in all. It
// sends one EVALSHA, and a DEL of the latch when that was answered.
func (l *Lock) UnlockAs(ctx context.Context, owner codec.Owner) error {
	return l.wrap("unlock-as", owner, engine.Explain(l.unlockAs(ctx, owner)))
}

func (l *Lock) unlockAs(ctx context.Context, owner codec.Owner) error {
	set, err := l.check(ctx, []Option{WithOwner(owner)})
	if err != nil {
		return err
	}
	if err := l.engine.Enter(); err != nil {
		return err
	}
	defer l.engine.Leave()
	l.keepTime(ctx)
	t := newHold(l, &set).tenure
	result := make(chan error, 1)
	if !l.engine.Go(func() { defer t.quitShared(); result <- t.releaseShared(l.engine.Command) }) {
		t.quitShared()
		return redlatch.ErrClosed
	}
	select {
	case err = <-result:
	case <-ctx.Done():
		err = fmt.Errorf("%w: %w", redlatch.ErrUncertain, engine.EndOf(ctx))
	}
	if errors.Is(err, redlatch.ErrLost) {
		return redlatch.ErrNotHeld
	}
	return err
}
