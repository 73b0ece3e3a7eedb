package repair

import (
	"context"
	"slices"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// Unlock takes a lock away from its holders.
type Unlock struct {
	Target
	// Name is the lock's.
	Name string
	// Dead are the holders that are stated to be dead.
	Dead []string
	// EvenIfAlive takes the lock at once, without a look at its holders.
	EvenIfAlive bool
	// Shown are the holders that were shown to a user of the live page, as they stand in Redis:
	// the lock is left alone when it has others, and when For is too short to see whether its
	// lease is renewed, whatever is stated. nil is any holders, and leaves that to Dead.
	Shown []string
	// For is how long to look whether the lease is renewed, at most.
	For time.Duration
	// Looks is called before that, with how long it takes, if it is not nil.
	Looks func(limit time.Duration)
	// Confirm asks the user before the lock is taken, if it is not nil.
	Confirm func(*Forced) bool
	// Takes is called just before the lock is taken, if it is not nil.
	Takes func()
}

// Run does it. What was found, and whether the lock was taken, is in Forced, which is nil when
// the lock could not be looked at. The error is a *Refusal when the lock was left alone.
func (u *Unlock) Run(ctx context.Context) (*Forced, error) {
	odd, err := u.glance(ctx, u.Name)
	switch {
	case err != nil:
		return nil, err
	case odd != "":
		f := oddOf(u.Name, odd)
		err = u.refusal(f)
		f.note(err)
		return f, err
	}
	first, err := inspect.TakeSnapshot(ctx, u.Client, u.Name)
	if err != nil {
		return nil, err
	}
	f := forcedOf(&first)
	err = u.unseen(f)
	if err == nil && first.Held() && !u.EvenIfAlive && f.unfit() == "" {
		if f, first, err = u.examine(ctx, first); err != nil {
			return nil, err
		}
	}
	f.readDetails(ctx, u.Dial)
	if err == nil {
		err = u.refusal(f)
	}
	if err == nil {
		err = u.take(ctx, &first, f)
	}
	f.note(err)
	f.readNow(ctx, u.Client)
	return f, err
}

// unseen says that the lock has other holders than were shown.
func (u *Unlock) unseen(f *Forced) error {
	if u.Shown == nil {
		return nil
	}
	var now []string
	for i := range f.Holders {
		now = append(now, f.Holders[i].Owner)
	}
	shown := slices.Clone(u.Shown)
	slices.Sort(now)
	slices.Sort(shown)
	switch {
	case len(now) == 0:
		return isFree(f.Name)
	case !slices.Equal(now, shown):
		return refusef(RefusedChanged, "lock %q is not held any more as it was shown, and was not taken", f.Name)
	}
	return nil
}

// examine looks whether the holder lives.
func (u *Unlock) examine(ctx context.Context, first inspect.Snapshot) (*Forced, inspect.Snapshot, error) {
	if u.Looks != nil && first.Inspection.TTL >= 0 { // without a lease there is nothing to wait for
		u.Looks(LookLimit(u.For, first.Inspection.TTL))
	}
	renewed, last, err := inspect.WatchRenewal(ctx, u.Client, first, u.For)
	if err != nil {
		return nil, first, err
	}
	f := forcedOf(&last)
	if f.Renewed = renewed; last.Held() && !first.SameHolders(&last) {
		f.changed = true
	}
	return f, last, nil
}

// LookLimit returns how long a lease with so much left is looked at, at most for limit.
func LookLimit(limit, left time.Duration) time.Duration {
	if left < 0 {
		return limit
	}
	return min(limit, inspect.RenewalDue(left))
}

// refusal says why the lock is not taken, nil when it may be.
func (u *Unlock) refusal(f *Forced) error {
	if why := f.unfit(); why != "" {
		return refusef(RefusedKind, "%s. It is left alone", why)
	}
	switch {
	case len(f.Holders) == 0:
		return isFree(f.Name)
	case u.EvenIfAlive:
		return nil
	case f.changed:
		return refusef(RefusedChanged, "lock %q changes hands: it is not stuck", f.Name)
	case f.Renewed == inspect.RenewedYes:
		return refusef(RefusedAlive, "lock %q: its holder is alive, its lease was renewed just now", f.Name).
			with("--even-if-alive takes the lock all the same")
	}
	if u.Shown != nil && f.TTLMillis != nil && f.Renewed == inspect.RenewedUnknown {
		return refusef(RefusedUnknown, "lock %q has a lease so long that %v do not show whether it is renewed: "+
			"redlatch unlock --force looks longer, with --for", f.Name, u.For)
	}
	return u.doubt(f)
}

// doubt says which holders may live, nil when all are stated to be dead, or are readers whose own
// lease is over. One at least is stated: a lock is not taken without that.
func (u *Unlock) doubt(f *Forced) error {
	alive := f.alive(u.Dead)
	switch {
	case len(u.Dead) == 0:
		if len(alive) == 0 {
			alive = []string{f.Holders[0].Owner}
		}
		of, they := "its holder is", "it is"
		if len(alive) > 1 {
			of, they = "its holders are", "they are"
		}
		return refusef(RefusedUnknown, "lock %q: %s not known to be dead: %s", f.Name, of, f.whyUnknown()).
			with("If you know that %s dead: %s. --even-if-alive takes the lock in any case", they, stated(alive))
	case !f.isHeldBy(u.Dead):
		return refusef(RefusedOther, "lock %q is not held by %s", f.Name, words(u.Dead, " or "))
	case len(alive) > 0:
		return refusef(RefusedOther, "lock %q has other holders, too", f.Name).
			with("If you know that they are dead as well, add %s", stated(alive))
	}
	return nil
}

// take asks the user, where there is one, looks once more, and takes the lock.
func (u *Unlock) take(ctx context.Context, seen *inspect.Snapshot, f *Forced) error {
	if u.Confirm != nil && !u.Confirm(f) {
		return refusef(RefusedDeclined, "lock %q was not taken", f.Name)
	}
	// Confirmation and details took time since the last look, and the script that takes the
	// lock does not compare holders.
	now, err := inspect.TakeSnapshot(ctx, u.Client, f.Name)
	if err != nil {
		return err
	}
	switch {
	case !now.Held(), u.EvenIfAlive && u.Confirm == nil: // the taking finds out
	case !seen.SameHolders(&now):
		return refusef(RefusedChanged, "lock %q has changed hands meanwhile, and was not taken", f.Name)
	case !u.EvenIfAlive && seen.RenewedBy(&now):
		f.Renewed = inspect.RenewedYes
		return refusef(RefusedAlive, "lock %q: its holder is alive, its lease was renewed just now", f.Name)
	}
	newLock := rlock.New
	switch {
	case f.shape.Mode == codec.ModeRead:
		newLock = reading
	case f.shape.Mode == codec.ModeWrite:
		newLock = writing
	case now.ReadQueue() && now.Inspection.Waiting > 0:
		newLock = rfairlock.New
	}
	heard := hearingOf(ctx, u.Target, &now, f.shape.Mode)
	if u.Takes != nil {
		u.Takes()
	}
	f.Tried = true
	held, err := newLock(u.Client, f.Name).ForceUnlock(ctx)
	switch {
	case err != nil:
		return err
	case !held:
		return isFree(f.Name)
	}
	f.Taken, f.Notified, f.Subscribers, f.heard = true, heard.notified, heard.subscribers, heard
	return nil
}

func reading(c *redlatch.Client, name string) *rlock.Lock { return rreadwritelock.New(c, name).Read() }
func writing(c *redlatch.Client, name string) *rlock.Lock { return rreadwritelock.New(c, name).Write() }
