package repair

import (
	"context"
	"fmt"
	"slices"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/transport"
)

// take calls Confirm, looks once more, and takes the lock.
func (u *Unlock) take(ctx context.Context, seen *look) error {
	f := seen.Forced
	if u.Confirm != nil && !u.Confirm(f) {
		return refusef(RefusedDeclined, "%s was not taken", f.subject())
	}
	// Confirmation and details took time since the last look.
	now, err := u.look(ctx)
	if err != nil {
		return err
	}
	from, err := u.takeable(seen, now)
	if err != nil {
		return err
	}
	f.heard = u.hearing(ctx, now, from)
	if u.Takes != nil {
		u.Takes()
	}
	f.Tried = true
	switch {
	case len(u.owners()) > 0:
		err = u.release(ctx, f, now, from)
	default:
		err = u.force(ctx, now)
	}
	if err == nil {
		f.Taken, f.Notified, f.Subscribers = true, f.heard.notified, f.heard.subscribers
	}
	return err
}

// takeable returns the judged holders whose holds have not changed in the last look.
func (u *Unlock) takeable(seen, now *look) (from []string, err error) {
	if seen.judged == nil {
		u.judge(seen)
	}
	now.compare(seen)
	for _, j := range now.judged {
		if !u.EvenIfAlive && j.renewed == inspect.RenewedYes {
			seen.Renewed = inspect.RenewedYes
			return nil, u.alive(now.Forced, []string{j.owner})
		}
		if !u.EvenIfAlive && j.unread {
			return nil, u.unread(now.Forced)
		}
		from = append(from, j.owner)
	}
	switch {
	case len(u.owners()) == 0 && (len(now.Holders) == 0 || u.Confirm == nil): // the taking finds out
		return from, nil
	case len(now.Holders) == 0 && !u.semaphore:
		return nil, isFree(now.Name)
	case len(from) == 0, len(u.owners()) == 0 && !seen.lock.SameHolders(now.lock):
		return nil, refusef(RefusedChanged, "%s has changed hands meanwhile, and was not taken", now.subject())
	}
	return from, nil
}

// lockOf returns the lock of the kind and role in which the owner holds it. The empty owner stands
// for all holders.
func (u *Unlock) lockOf(now *look, owner string) *rlock.Lock {
	_, writes := codec.WriterOf(owner)
	switch {
	case now.Mode != "" && (writes || owner == "" && now.Mode == codec.ModeWrite):
		return rreadwritelock.New(u.Client, now.Name).Write()
	case now.Mode != "":
		return rreadwritelock.New(u.Client, now.Name).Read()
	case now.lock.ReadQueue() && now.lock.Waiting > 0:
		return rfairlock.New(u.Client, now.Name)
	}
	return rlock.New(u.Client, now.Name)
}

// force takes the lock from all holders.
func (u *Unlock) force(ctx context.Context, now *look) error {
	held, err := u.lockOf(now, "").ForceUnlock(ctx)
	if err == nil && !held {
		return isFree(now.Name)
	}
	return err
}

// release takes the lock from some holders, as if each of them had released all its holds. A writer's
// reads end first, so that waiters are woken once, by the end of its write.
func (u *Unlock) release(ctx context.Context, f *Forced, now *look, from []string) error {
	slices.SortStableFunc(from, func(a, b string) int {
		_, writes := codec.WriterOf(a)
		_, other := codec.WriterOf(b)
		return order(writes) - order(other)
	})
	for _, owner := range from {
		outcome, err := release(ctx, u.internal(now, owner), owner)
		if err != nil && len(f.TakenFrom) > 0 {
			return fmt.Errorf("%s: %s was removed, but not %s: %w", f.subject(), words(f.TakenFrom, ", "), sanitize.Word(owner), err)
		}
		if err != nil {
			return err
		}
		// The end of one reader's holds frees a lock of readers whose leases are over.
		if outcome != reply.NotHeld || len(f.TakenFrom) > 0 {
			f.TakenFrom = append(f.TakenFrom, owner)
		}
	}
	if len(f.TakenFrom) > 0 {
		return nil
	}
	return refusef(RefusedChanged, "%s is no longer held by %s", f.subject(), words(from, " or "))
}

// internal returns the lock or semaphore of a holder.
func (u *Unlock) internal(now *look, owner string) *hold.Lock {
	if u.semaphore {
		return rsemaphore.NewExpirable(u.Client, u.Name).Internal()
	}
	return u.lockOf(now, owner).Internal()
}

// release ends all holds of one owner, or releases a permit, with the script that clients use for
// their own releases. Owner is the field or the permit's id.
func release(ctx context.Context, l *hold.Lock, owner string) (outcome reply.ReleaseOutcome, err error) {
	l.Prepare(ctx)
	answer, err := l.Ask(ctx, func(c *transport.Call) {
		l.Kind.Release(c, &acquire.Request{Owner: owner, Lease: int64(0)})
		c.Urgent = true
	})
	if err == nil {
		outcome, err = l.Kind.Released(answer)
	}
	if err != nil {
		return 0, &redlatch.LockError{Op: "force-unlock", Name: l.Name, Err: err}
	}
	return outcome, nil
}
