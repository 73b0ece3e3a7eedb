package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/transport"
)

// Unlock releases a lock for all or some of its holders, or permits of a semaphore.
type Unlock struct {
	Target
	Name string
	// Owners and Dead list the owners, or the IDs of permits, that lose the lock. The caller
	// declares the owners in Dead to be dead. If both lists are empty, all holders are examined,
	// and EvenIfAlive releases the lock for all of them.
	Owners, Dead []string
	EvenIfAlive  bool
	// Strict also refuses if an owner no longer holds the lock, or if For is too short to
	// see a renewal.
	Strict bool
	For    time.Duration
	// Looks, if not nil, is called before leases are watched, with the expected time.
	Looks func(limit time.Duration)
	// Confirm, if not nil, must agree to the release.
	Confirm func(*Forced) bool
	// Takes, if not nil, is called just before the release.
	Takes func()

	semaphore bool
}

// owners returns nil for all owners.
func (u *Unlock) owners() []string {
	var all []string
	for _, owner := range slices.Concat(u.Owners, u.Dead) {
		if u.semaphore {
			owner = strings.ToLower(owner) // hexadecimal
		}
		if !slices.Contains(all, owner) {
			all = append(all, owner)
		}
	}
	return all
}

// Run returns a nil result if the lock was not read, and a *Refusal if nothing was done.
func (u *Unlock) Run(ctx context.Context) (*Forced, error) {
	f, err := u.run(ctx)
	if other := (*inspect.NotLock)(nil); errors.As(err, &other) {
		err = refusef(RefusedKind, "%s. It was not changed", other)
		if f == nil {
			f = &Forced{Named: other.Named, Holders: []inspect.Holder{}, Renewed: inspect.RenewedUnknown, odd: true}
		}
	}
	if f != nil {
		if r := (*Refusal)(nil); errors.As(err, &r) {
			f.Refused = r.Why
		}
		f.readNow(ctx, u.Target)
	}
	return f, err
}

func (u *Unlock) run(ctx context.Context) (*Forced, error) {
	if err := u.CheckIsLock(ctx, u.Name); err != nil {
		return nil, err
	}
	now, err := u.look(ctx)
	if err != nil {
		return nil, err
	}
	err = u.missing(now.Forced)
	if err == nil && !u.EvenIfAlive {
		if now, err = u.examine(ctx, now); err != nil {
			return nil, err
		}
		err = u.refusal(now.Forced)
	}
	now.readLabels(ctx, u.Dial)
	if err == nil {
		err = u.take(ctx, now)
	}
	return now.Forced, err
}

func (u *Unlock) missing(f *Forced) error {
	owners := u.owners()
	switch {
	case u.semaphore && len(owners) == 0:
		return refusef(RefusedKind, "%q is a number, not a lock: release a semaphore's permit by its ID", f.Name).
			with("`redlatch status %s` shows the IDs; then use --dead ID. A counting semaphore does not use IDs", inspect.Args(f.Name))
	case u.semaphore && len(f.Holders) == 0:
		return refusef(RefusedOther, "%s: no held permit has the ID %s", f.subject(), words(owners, " or "))
	case len(f.Holders) == 0:
		return isFree(f.Name)
	case len(owners) == 0:
		return nil
	case u.Strict && !f.isHeldByAll(owners):
		return refusef(RefusedChanged, "%s has changed since it was shown, and was not unlocked", f.subject())
	case len(f.of(owners)) == 0:
		return refusef(RefusedOther, "%s is not held by %s", f.subject(), words(owners, " or "))
	}
	return nil
}

func (u *Unlock) refusal(f *Forced) error {
	var alive []string
	for _, j := range f.judged {
		if j.renewed == inspect.RenewedYes {
			alive = append(alive, j.owner)
		}
	}
	all := len(u.owners()) == 0
	switch {
	case len(f.Holders) == 0 && !u.semaphore:
		return isFree(f.Name)
	case len(f.judged) == 0 && all:
		return refusef(RefusedChanged, "%s is changing hands: it is not stuck", f.subject())
	case len(f.judged) == 0:
		return refusef(RefusedChanged, "%s: the hold of %s has changed, so its owner is not dead", f.subject(), words(u.owners(), " or "))
	case len(alive) > 0 && (!all || len(alive) == len(f.judged)):
		return u.alive(f, alive)
	case slices.ContainsFunc(f.judged, func(j *judged) bool { return j.unread }):
		return u.unread(f)
	case u.Strict && f.Renewed == inspect.RenewedUnknown && slices.ContainsFunc(f.judged, func(j *judged) bool { return j.left > 0 }):
		return refusef(RefusedUnknown, "%s has a lease too long to tell within %v whether it is renewed: "+
			"redlatch unlock --force with --for watches longer", f.subject(), u.For)
	}
	return u.doubt(f)
}

func (u *Unlock) alive(f *Forced, alive []string) error {
	if len(f.Holders) == 1 {
		return refusef(RefusedAlive, "%s: its holder is alive, its lease was renewed just now", f.subject()).
			with("--even-if-alive unlocks it anyway")
	}
	is, lease := "is", "its lease was"
	if len(alive) > 1 {
		is, lease = "are", "their leases were"
	}
	r := refusef(RefusedAlive, "%s: %s %s alive, %s renewed just now", f.subject(), words(alive, " and "), is, lease)
	if f.isRenewedByOthers(alive) {
		r.Text += ". A reader of Redisson before 4.4 also renews the leases of dead readers"
	}
	return r.with("--even-if-alive with --owner removes one holder anyway")
}

func (u *Unlock) unread(f *Forced) error {
	var readers []string
	for _, j := range f.judged {
		if j.unread {
			readers = append(readers, j.owner)
		}
	}
	return refusef(RefusedUnknown, "%s: whether %s is alive is unknown: its own lease cannot be read", f.subject(), words(readers, " or ")).
		with("--even-if-alive with --owner removes one holder anyway")
}

// doubt refuses unless each holder has been declared dead or is a reader with an expired lease. It also refuses if
// the caller has not declared any holder dead.
func (u *Unlock) doubt(f *Forced) error {
	var still, alive []string
	for _, j := range f.judged {
		if j.renewed == inspect.RenewedYes {
			continue
		}
		still = append(still, j.owner)
		if j.left != 0 && !isOneOf(j.owner, u.Dead) {
			alive = append(alive, j.owner)
		}
	}
	if len(u.Dead) == 0 && len(alive) == 0 {
		alive = still[:1]
	}
	if len(alive) == 0 {
		return nil
	}
	of, they := "its holder is", "it is"
	switch {
	case len(f.Holders) > 1 && len(alive) == 1:
		of = "its holder " + words(alive, "") + " is"
	case len(alive) > 1:
		of, they = "its holders are", "they are"
	}
	from := ""
	if len(f.Holders) > 1 {
		from = ", with --owner from one holder only"
	}
	return refusef(RefusedUnknown, "%s: %s not known to be dead: %s", f.subject(), of, f.whyUnknown()).
		with("If you are sure that %s dead: %s. --even-if-alive unlocks it in any case%s", they, stated(alive), from)
}

// LookLimit returns how long to watch a lease with the given time left.
func LookLimit(limit, left time.Duration) time.Duration {
	if left < 0 {
		return limit
	}
	return min(limit, inspect.RenewalDue(left))
}

func isOneOf(owner string, owners []string) bool {
	bare, _ := protocol.WriterOf(owner)
	return slices.ContainsFunc(owners, func(other string) bool {
		other, _ = protocol.WriterOf(other)
		return strings.EqualFold(other, bare)
	})
}

func (u *Unlock) take(ctx context.Context, seen *look) error {
	f := seen.Forced
	if u.Confirm != nil && !u.Confirm(f) {
		return refusef(RefusedDeclined, "%s was not unlocked", f.subject())
	}
	now, err := u.look(ctx)
	if err != nil {
		return err
	}
	from, err := u.takeable(seen, now)
	if err != nil {
		return err
	}
	notified, subscribers, first := u.hearing(ctx, now, from)
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
	if f.Taken = err == nil || errors.Is(err, redlatch.ErrNotNotified); err == nil {
		f.Notified, f.Subscribers, f.first = notified, subscribers, first
	}
	return err
}

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
	case len(u.owners()) == 0 && (len(now.Holders) == 0 || u.Confirm == nil): // the release detects this
		return from, nil
	case len(now.Holders) == 0 && !u.semaphore:
		return nil, isFree(now.Name)
	case len(from) == 0, len(u.owners()) == 0 && !seen.lock.SameHolders(now.lock):
		return nil, refusef(RefusedChanged, "%s has changed hands, and was not unlocked", now.subject())
	}
	return from, nil
}

// lockOf returns the lock for a given owner, or for all holders if owner is "".
func (u *Unlock) lockOf(now *look, owner string) *rlock.Lock {
	_, writes := protocol.WriterOf(owner)
	switch {
	case now.Mode != "" && (writes || owner == "" && now.Mode == protocol.ModeWrite):
		return rreadwritelock.New(u.Client, now.Name).Write()
	case now.Mode != "":
		return rreadwritelock.New(u.Client, now.Name).Read()
	case now.lock.ReadQueue() && now.lock.Waiting > 0:
		return rfairlock.New(u.Client, now.Name)
	}
	return rlock.New(u.Client, now.Name)
}

func (u *Unlock) force(ctx context.Context, now *look) error {
	held, err := u.lockOf(now, "").ForceUnlock(ctx)
	if err == nil && !held {
		return isFree(now.Name)
	}
	return err
}

// release releases a writer's read locks before its write lock, so that waiters are woken only once.
func (u *Unlock) release(ctx context.Context, f *Forced, now *look, from []string) error {
	slices.SortStableFunc(from, func(a, b string) int {
		_, writes := protocol.WriterOf(a)
		_, other := protocol.WriterOf(b)
		return order(writes) - order(other)
	})
	var untold error
	for _, owner := range from {
		outcome, err := release(ctx, u.internal(now, owner), owner)
		if errors.Is(err, redlatch.ErrNotNotified) {
			outcome, untold, err = reply.Free, err, nil
		}
		if err != nil && len(f.TakenFrom) > 0 {
			return fmt.Errorf("%s: %s was removed, but not %s: %w", f.subject(), words(f.TakenFrom, ", "), sanitize.Word(owner), err)
		}
		if err != nil {
			return err
		}
		// Releasing one reader removes readers with expired leases.
		if outcome != reply.NotHeld || len(f.TakenFrom) > 0 {
			f.TakenFrom = append(f.TakenFrom, owner)
		}
	}
	if len(f.TakenFrom) > 0 {
		return untold
	}
	return refusef(RefusedChanged, "%s is no longer held by %s", f.subject(), words(from, " or "))
}

func (u *Unlock) internal(now *look, owner string) *hold.Lock {
	if u.semaphore {
		return hold.Of(rsemaphore.NewExpirable(u.Client, u.Name))
	}
	return hold.Of(u.lockOf(now, owner))
}

// release ends all holds of owner, which is a field or a permit's ID.
func release(ctx context.Context, l *hold.Lock, owner string) (outcome reply.ReleaseOutcome, err error) {
	l.Kind.Prepare(ctx)
	r := &acquire.Request{Owner: owner, Lease: int64(0)}
	answer, err := l.Ask(ctx, func(c *transport.Call) {
		l.Kind.Release(c, r)
		c.Urgent = true
	})
	if err == nil {
		outcome, err = l.Kind.Released(answer)
	}
	if err = l.Untold(r, err); err != nil {
		return 0, &redlatch.LockError{Op: "force-unlock", Name: l.Name, Err: err}
	}
	return outcome, nil
}
