package repair

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/rfairlock"
)

// Which waiters were notified that a lock is free. Waiters of a plain lock share one
// channel; of a queue only the first is notified, on a channel of its own.
const (
	notifiedAll   = "all"
	notifiedFirst = "first_in_queue"
	notifiedPlain = "all_but_queue"
	notifiedNone  = "none"
)

// notifiedTexts are these in words.
var notifiedTexts = map[string]string{
	notifiedAll:   "all waiters were notified",
	notifiedFirst: "the first in the queue whose deadline is not over was notified",
	notifiedPlain: "the waiters of the plain lock were notified. Whether the fair lock of this name has a queue is " +
		"unknown: a waiter in it was not notified, and gets the lock when it next polls",
	notifiedNone: "no waiter was notified: other holders have it still",
}

// Forced is what Unlock has found and done: the JSON of redlatch unlock --force.
type Forced struct {
	inspect.Named
	// Kind and Mode are those of a read/write lock, "readwrite", and "read" or "write". Kind is
	// "semaphore" for permits, and left out for other locks.
	Kind    string           `json:"kind,omitempty"`
	Mode    string           `json:"mode,omitempty"`
	Holders []inspect.Holder `json:"holders"`
	inspect.Lease
	// Renewed is whether the lease is seen to be renewed: yes, no or unknown.
	Renewed string `json:"renewed"`
	// QueueLength is how many are in the queue of a fair lock, nil when it was not read, and
	// QueueError why it was not.
	QueueLength *int   `json:"queue_length"`
	QueueError  string `json:"queue_error,omitempty"`
	Taken       bool   `json:"taken"`
	// TakenFrom are the holders that have lost it, if it was not taken whole.
	TakenFrom []string `json:"taken_from,omitempty"`
	// Notified is which waiters were notified that the lock is free, "" when it was not taken.
	Notified string `json:"notified,omitempty"`
	// Subscribers is how many connections were subscribed to the channel of these waiters: with
	// 0 no waiter was notified. It is left out when they cannot be counted.
	Subscribers *int64 `json:"subscribers,omitempty"`
	// Refused is why the lock was not taken.
	Refused string `json:"refused,omitempty"`
	// Now is the lock after it was taken: a waiter may have it. It is left out when it was not
	// taken, and when it cannot be told.
	Now *After `json:"now,omitempty"`
	// Tried says that the lock was to be taken, whatever came of it.
	Tried bool `json:"-"`

	wanted []string  // the owners that are to lose it, none for all
	judged []*judged // the holders that were looked at and whose holds did not change
	odd    bool      // it is a hash, but no lock
	first  string    // the waiter that is notified, of a fair lock
}

// After is a lock after it was taken from its holder.
type After struct {
	// Holders are those that have it now, none when it is free.
	Holders []inspect.Holder `json:"holders"`
	inspect.Lease
}

// String returns the state in words.
func (a *After) String() string {
	if len(a.Holders) == 0 {
		return "free"
	}
	var owners []string
	for i := range a.Holders {
		owners = append(owners, a.Holders[i].Owner)
	}
	if more := len(owners) - shownOwners; more > 0 {
		return fmt.Sprintf("held by %s and %d more", words(owners[:shownOwners], ", "), more)
	}
	return "held by " + words(owners, " and ")
}

// shownOwners is how many of the holders are named that have a lock after it was taken.
const shownOwners = 3

func (f *Forced) readNow(ctx context.Context, client *redlatch.Client) {
	if !f.Taken || f.IsSemaphore() {
		return
	}
	if s, err := inspect.Read(ctx, client, f.Name, inspect.Places); err == nil {
		now := forcedOf(s)
		f.Now = &After{now.Holders, now.Lease}
	}
}

func forcedOf(s *inspect.Snapshot) *Forced {
	f := &Forced{
		Named: inspect.NameOf(s.Name), Holders: append([]inspect.Holder{}, s.Holders...), Lease: inspect.LeaseOf(s.Held(), s.TTL),
		Renewed: inspect.RenewedUnknown, QueueError: s.QueueError,
	}
	if s.ReadQueue() {
		f.QueueLength = &s.Waiting
	}
	if s.Kind == inspect.ReadWrite {
		f.Kind, f.Mode = string(s.Kind), s.Mode
	}
	return f
}

func (f *Forced) readLabels(ctx context.Context, dial connect.Dialer) {
	if f.IsSemaphore() {
		return
	}
	_ = connect.Use(ctx, dial, func(c redis.Conn) error { return inspect.SetLabels(c, f.Holders, nil) })
}

// IsLock reports whether it is a lock: what else it holds may be private.
func (f *Forced) IsLock() bool { return !f.odd }

// IsSemaphore reports whether the holders are permits of a semaphore.
func (f *Forced) IsSemaphore() bool { return f.Kind == string(inspect.Semaphore) }

// Heard says which waiters were notified that the lock was taken.
func (f *Forced) Heard() string {
	switch {
	case f.Subscribers == nil || *f.Subscribers > 0:
		return notifiedTexts[f.Notified]
	case f.Notified == notifiedFirst:
		return fmt.Sprintf("no waiter was notified: no connection is subscribed for the first in the queue, %s. "+
			"If it is dead, `redlatch evict %s` takes it out of the queue, and `redlatch evict --all-dead %s` all that are dead",
			sanitize.Word(f.first), inspect.Args(f.Name, f.first), inspect.Args(f.Name))
	case f.Notified == notifiedPlain:
		return "no waiter was notified: no connection of the master is subscribed to the channel of the plain lock. " +
			"Whether the fair lock of this name has a queue is unknown: a waiter in it gets the lock when it next polls"
	case f.IsSemaphore():
		return "no waiter was notified: no connection of the master is subscribed to the semaphore's channel"
	}
	return "no waiter was notified: no connection of the master is subscribed to the lock's channel"
}

func (f *Forced) note(err error) {
	var r *Refusal
	if errors.As(err, &r) {
		f.Refused = r.Why
	}
}

func (f *Forced) subject() string {
	if f.IsSemaphore() {
		return fmt.Sprintf("semaphore %q", f.Name)
	}
	return fmt.Sprintf("lock %q", f.Name)
}

// of returns the holders that are some of owners, all holders without any.
func (f *Forced) of(owners []string) (all []*inspect.Holder) {
	for i := range f.Holders {
		if len(owners) == 0 || isOneOf(f.Holders[i].Owner, owners) {
			all = append(all, &f.Holders[i])
		}
	}
	return all
}

// Losers returns the holders that are to lose the lock, or have lost it.
func (f *Forced) Losers() []*inspect.Holder {
	wanted := f.wanted
	if len(f.TakenFrom) > 0 {
		wanted = f.TakenFrom
	}
	if losers := f.of(wanted); len(losers) > 0 {
		return losers
	}
	return f.of(nil)
}

// Others returns the number of holders that keep the lock, and of readers whose leases have expired.
func (f *Forced) Others() (alive, over int) {
	losers := f.Losers()
	for i := range f.Holders {
		switch h := &f.Holders[i]; {
		case slices.Contains(losers, h):
		case h.IsOver():
			over++
		default:
			alive++
		}
	}
	return alive, over
}

// isHeldByAll reports whether each of the owners has the lock.
func (f *Forced) isHeldByAll(owners []string) bool {
	return !slices.ContainsFunc(owners, func(owner string) bool { return len(f.of([]string{owner})) == 0 })
}

// isRenewedByOthers reports whether another reader may renew one of these, as Redisson's do before
// 4.4.
func (f *Forced) isRenewedByOthers(readers []string) bool {
	return f.Mode == codec.ModeRead && slices.ContainsFunc(f.Holders, func(h inspect.Holder) bool {
		return h.Kind == "redisson" && slices.ContainsFunc(readers, func(owner string) bool { return owner != h.Owner })
	})
}

func stated(owners []string) string { return "--dead " + words(owners, " --dead ") }

func words(owners []string, between string) string {
	safe := make([]string, len(owners))
	for i, owner := range owners {
		safe[i] = sanitize.Word(owner)
	}
	return strings.Join(safe, between)
}

// whyUnknown returns why the holder may live.
func (f *Forced) whyUnknown() string {
	switch {
	case f.TTLMillis == nil && !f.IsSemaphore():
		return "the lock has no lease, so there is nothing to renew"
	case f.IsSemaphore() && f.Holders[0].LeftMillis == nil:
		return "its lease never ends, so there is nothing to renew"
	case f.Renewed == inspect.RenewedNo:
		return "its lease is not renewed, but it may have a lease of its own, or be cut off"
	}
	return "it was not watched long enough to see whether its lease is renewed"
}

// hearing finds out, before the lock is taken from some holders, which waiters will be notified, and
// counts the connections that will get the message, nil when they cannot be counted: a message to a
// channel without a subscriber notifies no waiter. First is the waiter of a fair lock.
func (u *Unlock) hearing(ctx context.Context, now *look, from []string) (notified string, subscribers *int64, first string) {
	channel, notified := codec.LockChannel(u.Name), notifiedAll
	switch {
	case u.semaphore:
		channel = codec.SemaphoreChannel(u.Name)
	case len(u.owners()) > 0 && now.stays(from):
		return notifiedNone, nil, ""
	case now.Mode != "":
		channel = codec.ReadWriteChannel(u.Name)
	case !now.lock.ReadQueue():
		notified = notifiedPlain
	case now.lock.Waiting > 0:
		for _, w := range now.lock.Queue {
			if w.Deadline.IsZero() || w.Deadline.After(time.Now()) {
				counts, err := admin.Listeners(ctx, rfairlock.New(u.Client, u.Name), w.Text)
				if err != nil {
					return notifiedFirst, nil, w.Text
				}
				return notifiedFirst, &counts[0], w.Text
			}
		}
		return notifiedFirst, nil, ""
	}
	_ = connect.Use(ctx, u.Dial, func(c redis.Conn) error {
		n, err := connect.Listening(ctx, c, channel)
		if err == nil {
			subscribers = &n[0]
		}
		return err
	})
	return notified, subscribers, ""
}

// stays reports whether a lock has holders that block it when some have lost it.
func (f *Forced) stays(from []string) bool {
	return slices.ContainsFunc(f.Holders, func(h inspect.Holder) bool { return !h.IsOver() && !slices.Contains(from, h.Owner) })
}
