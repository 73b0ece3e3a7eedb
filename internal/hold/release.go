package hold

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/transport"
)

// Unlock releases the hold. The last hold of its owner frees the lock or transfers it to the next caller. Later calls
// return the first result.
func (h *Hold) Unlock() error { return h.unlock(nil) }

func (h *Hold) unlock(begun func()) error {
	h.giveUp.Do(func() {
		now := time.Now()
		h.begun = begun
		h.result = h.release(now)
		defer h.putSubscription()
		h.observeRelease(now)
	})
	return h.result
}

func (h *Hold) release(now time.Time) error {
	e := h.ownership.lock.Engine
	e.Join()
	defer e.Leave() // even if the observer calls runtime.Goexit
	l, over := h.beginUnlock(now)
	if over {
		return l.ended
	}
	return h.endUnlock(l, h.lower(l.left, l.bound))
}

// putSubscription lets the next acquisition use the owner and its subscription, if the lock was freed and nothing about
// the owner is still in progress:
//
//   - every attempt was answered, and none was canceled or is in doubt;
//   - the lease was never renewed, so no renewal can shorten the next lease;
//   - the owner was not re-entered, handed over or shown to the caller;
//   - the release was sent once and freed the lock.
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

func (o *ownership) closeSubscription() {
	if o.subscription != nil {
		o.subscription.Close()
	}
}

type leaving struct {
	ended  error // why the hold had already ended, or nil
	left   int
	bound  time.Duration
	resent int64
}

// beginUnlock ends the hold and removes it from its ownership. It stops the watchdog first, because a renewal after the
// release would report a loss. over means that a release is not needed.
func (h *Hold) beginUnlock(now time.Time) (l leaving, over bool) {
	o := h.ownership
	e := o.lock.Engine
	e.Watchdog.Remove(&h.lease)
	l.bound = max(0, min(e.Command, h.lease.Deadline().Remaining(now)))
	h.result = errUnresolved // if the observer ends the goroutine
	if l.ended = h.finish(endGiven, now); l.ended == nil {
		engine.OrElse(func() { h.observeEnd(endGiven) }, func() { h.revoke(false) })
	}
	if l.ended != nil && !h.ended.Load().kept {
		return l, true
	}
	if l.ended != nil {
		l.bound = e.Command // the owner's other holds may keep the lock for longer
	}
	l.resent = o.resent.Load()
	l.left = o.remove(h)
	// If the lease has expired, another user of the same owner may hold the lock.
	return l, l.ended != nil && o.shared && l.left == 0 &&
		h.lease.Deadline().Remaining(time.Now())+e.LossMargin(h.lease.TTL) <= 0
}

func (h *Hold) endUnlock(l leaving, err error) error {
	if l.ended == nil && err == nil {
		return nil
	}
	o := h.ownership
	switch err = engine.Explain(err); {
	case l.ended != nil && unresolved(err):
		return fmt.Errorf("%w: %w", l.ended, err)
	case l.ended != nil:
		return l.ended
	case errors.Is(err, engine.ErrLost) && o.resent.Load() != l.resent:
		return nil // a correction has set a count without this hold
	case errors.Is(err, engine.ErrWrongType):
		return fmt.Errorf("%w: %w", o.lock.Engine.Losses.Taken, err)
	case errors.Is(err, engine.ErrLost):
		if queue, place := o.formerPlace(); queue != nil {
			queue.Leave(o.lock.Name, place)
		}
		return h.gone()
	}
	return o.lock.Untold(o.final, err)
}

// Untold returns ErrNotNotified for the error of a release whose user may not publish, and err otherwise.
func (l *Lock) Untold(r *acquire.Request, err error) error {
	if l.Engine.DeniedPublish(err) && l.isGone(r) {
		return l.Engine.NotNotified(l.Kind.Channel(nil), err)
	}
	return err
}

// isGone reports whether the owner no longer holds the lock. If the owner is an ID, it repeats the release to find out.
func (l *Lock) isGone(r *acquire.Request) bool {
	at, ids := l.Engine.Attempt(), l.Owning == nil
	if ids {
		l.Kind.Release(&at.Call, r)
	} else {
		at.Call.Command, at.Call.NumKeys = "HGET", 1
		at.Call.Args = append(at.Call.Args, l.key, r.Owner)
	}
	answer, err := at.RunFor(l.Engine.Command, nil)
	if err != nil || !ids {
		return err == nil && answer == nil
	}
	out, err := l.Kind.Released(answer)
	return err == nil && out == reply.NotHeld
}

func (h *Hold) lower(left int, bound time.Duration) error {
	o := h.ownership
	switch {
	case o.shared:
		return o.releaseShared(bound, (*releasing)(h))
	case left == 0 && o.isFreed():
		return h.free(bound)
	}
	return o.step(bound, (*releasing)(h))
}

func (h *Hold) free(bound time.Duration) error {
	o := h.ownership
	if nested := o.otherRole(); nested != nil && nested.isEntering() {
		// Re-entries in the inner role must reach the server first.
		began := time.Now()
		if !nested.beginChangeFor(bound) {
			o.discard()
			o.passTurn(false)
			return errUnresolved
		}
		defer nested.endChange()
		bound -= time.Since(began)
	}
	h.frees = true
	var err error
	if t := o.transfer(); t != nil {
		(*releasing)(h).Started() // the next caller sends the call
		began := time.Now()
		err = t.Wait(bound)
		if err == nil || errors.Is(err, engine.ErrLost) {
			return err
		}
		bound -= time.Since(began)
	}
	passed := err
	open := passed != nil && !engine.Passing(passed) // the next caller may have taken the lock
	if passed == nil || bound > 0 {
		err = o.persist(bound, (*releasing)(h), open, func(c *transport.Call) { o.lock.Kind.Release(c, o.final) })
	}
	if err != nil && unresolved(err) {
		o.discard()
	}
	if !open || !errors.Is(err, engine.ErrNotSent) {
		return err
	}
	if errors.Is(passed, engine.ErrUncertain) {
		return passed
	}
	return fmt.Errorf("%w: %w", engine.ErrUncertain, passed)
}

// releasing implements engine.Follower for a hold's release. Once the release is sent, it passes the turn on and lets
// UnlockAsync return.
type releasing Hold

func (r *releasing) Started() {
	if r.frees {
		r.ownership.passTurn(true)
	}
	if r.begun != nil {
		r.begun()
	}
}

func unresolved(err error) bool {
	return engine.Passing(err) || errors.Is(err, engine.ErrUncertain)
}

// step lowers the count to the number of remaining holds, after any other changes.
func (o *ownership) step(bound time.Duration, sent engine.Follower) error {
	began := time.Now()
	if !o.beginChangeFor(bound) {
		return nil // the current change sets a count without this hold
	}
	target, owed := o.owed()
	if target == 0 && o.isFreed() {
		o.endChange()
		return nil // the last hold frees the lock
	}
	asked := time.Now()
	err := o.releaseTo(target, owed.Milliseconds(), bound-asked.Sub(began), sent)
	if unresolved(err) {
		o.correct(nil) // ends the change
		return nil
	}
	o.endChange()
	if errors.Is(err, engine.ErrLost) {
		if o.isFreed() {
			return nil // the last hold was released
		}
		o.lose(asked)
	}
	return err
}

// releaseTo lowers the count to target and sets the lease of the remaining holds. It is idempotent.
func (o *ownership) releaseTo(target int64, lease any, bound time.Duration, sent engine.Follower) error {
	r := acquire.Request{Owner: o.final.Owner, Lease: lease, Target: target}
	return o.persist(bound, sent, false, func(c *transport.Call) { o.lock.Kind.Release(c, &r) })
}

// latchSafe is how long a release may be repeated with the same latch.
const latchSafe = 10 * time.Second

// releaseShared lowers the count by one. As in Redisson, a latch makes the call idempotent.
func (o *ownership) releaseShared(bound time.Duration, sent engine.Follower) error {
	e, id := o.lock.Engine, uuid.New()
	latch := protocol.LatchKey(o.lock.Kind.Key(), hex.EncodeToString(id[:]))
	least := int64(math.MaxInt64) // shortest lease that was left to others
	fill := func(c *transport.Call) {
		lease := o.leaseForOthers()
		least = min(least, lease)
		r := acquire.Request{Owner: o.final.Owner, Lease: lease}
		o.lock.Owning.ReleaseShared(c, &r, latch)
	}
	forget := func() {
		del := &transport.Call{Command: "DEL", NumKeys: 1, Args: []any{latch}}
		e.Transport.Start(del, func(any, error) {})
		o.restore(least)
	}
	err := o.persist(bound, sent, false, fill)
	if !unresolved(err) {
		forget()
		return err
	}
	o.pendingReleases.Add(1)
	e.GoBeforeClose(func() {
		defer o.pendingReleases.Add(-1)
		err := o.persist(latchSafe, nil, false, fill)
		if unresolved(err) {
			e.Logger.Warn("redlatch: release abandoned: the lock may remain until its lease ends",
				"lock", o.lock.Name, "owner", o.final.Owner, "error", err)
			return
		}
		forget()
	})
	return err
}

// leaseForOthers returns the lease that a shared owner's release leaves: the longest lease that the owner's holds and
// attempts here need when it is sent, or the client's lease if there are none. By then, o may no longer be in the
// registry.
func (o *ownership) leaseForOthers() int64 {
	now := o.lock.joinShared(o.owner)
	defer now.quitShared()
	return now.most(o.lock.Engine.Lease).Milliseconds()
}

// restore renews the lock if an attempt that has overtaken a shared owner's release needs a longer lease than left,
// which the release has set, in milliseconds.
func (o *ownership) restore(left int64) {
	now, e := o.lock.joinShared(o.owner), o.lock.Engine
	defer now.quitShared()
	most := now.most(0).Milliseconds()
	if most <= left {
		return
	}
	e.Go(func() {
		_, err := e.Persist(e.Command, func(rest time.Duration) error {
			_, err := now.renewed(now.fillRenewal(most).RunFor(rest, nil))
			return err
		})
		if err != nil {
			e.Logger.Warn("redlatch: a release may have shortened the lease of another hold by the same owner",
				"lock", o.lock.Name, "owner", o.final.Owner, "error", err)
		}
	})
}

// persist repeats a release until the server answers or bound has passed. sent, if not nil, is notified at the first
// send. open means that an earlier call may have taken effect.
func (o *ownership) persist(bound time.Duration, sent engine.Follower, open bool, fill func(*transport.Call)) error {
	var out reply.ReleaseOutcome
	again, err := o.lock.Engine.Persist(bound, func(rest time.Duration) error {
		at := o.lock.Engine.Attempt()
		fill(&at.Call)
		at.Call.Urgent = true
		at.Sent = sent
		sent = nil
		answer, err := at.RunFor(rest, (*lateRelease)(o))
		out = reply.NotHeld
		if err == nil {
			out, err = o.lock.Kind.Released(answer)
		}
		if err != nil || out != reply.Free {
			o.notReusable.Store(true)
		}
		if errors.Is(err, engine.ErrUncertain) {
			o.pendingReleases.Add(1)
		}
		return err
	})
	if err == nil && out == reply.NotHeld && !open && !again {
		return engine.ErrLost
	}
	return err
}

// UnlockAsync runs [Hold.Unlock] on another goroutine, for which Close waits. It returns once the release, if needed,
// has been started, so that later calls reach the server after it. The channel receives the result of explain.
func (h *Hold) UnlockAsync(explain func(error) error) <-chan error {
	outcome, begun := make(chan error, 1), make(chan struct{})
	var once sync.Once // sync.OnceFunc allocates more
	started := func() { once.Do(func() { close(begun) }) }
	unlock := func() {
		defer func() {
			outcome <- explain(h.result)
			started()
		}()
		_ = h.unlock(started)
	}
	if !h.ownership.lock.Engine.Go(unlock) {
		unlock() // the client is closed and does not send anything
	}
	<-begun
	return outcome
}
