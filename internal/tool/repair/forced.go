package repair

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// All waiters of a plain lock share a channel. In a queue, only the first waiter is notified, on a
// separate channel.
const (
	notifiedAll   = "all"
	notifiedFirst = "first_in_queue"
	notifiedPlain = "all_but_queue"
	notifiedNone  = "none"
)

var notifiedTexts = map[string]string{
	notifiedAll:   "all waiters were notified",
	notifiedFirst: "the first waiter whose deadline has not passed was notified",
	notifiedPlain: "the waiters of the plain lock were notified. Whether the fair lock of this name has a queue is " +
		"unknown: a queued waiter was not notified, and gets the lock at its next poll",
	notifiedNone: "no waiter was notified: other holders still have the lock",
}

// Forced is the result of Unlock.
type Forced struct {
	inspect.Named
	// Kind and Mode are set for a read/write lock. Kind is "semaphore" for permits.
	Kind    string           `json:"kind,omitempty"`
	Mode    string           `json:"mode,omitempty"`
	Holders []inspect.Holder `json:"holders"`
	inspect.Lease
	Renewed string `json:"renewed"`
	// QueueLength is nil if the queue was not read. QueueError is the reason.
	QueueLength *int   `json:"queue_length"`
	QueueError  string `json:"queue_error,omitempty"`
	Taken       bool   `json:"taken"`
	// TakenFrom is set if other holders may keep the lock.
	TakenFrom []string `json:"taken_from,omitempty"`
	// Notified is "" if the lock was not released, or the user may not publish.
	Notified string `json:"notified,omitempty"`
	// Subscribers counts the subscribers to the waiters' channel. Nil means unknown.
	Subscribers *int64 `json:"subscribers,omitempty"`
	Refused     string `json:"refused,omitempty"`
	// Now is the lock afterwards; a waiter may hold it.
	Now   *After `json:"now,omitempty"`
	Tried bool   `json:"-"`

	wanted []string  // the owners that should lose it; nil means all
	judged []*judged // holders whose holds have not changed
	odd    bool      // a hash that is not a lock
	first  string    // the waiter of a fair lock that is notified
}

// After is a lock after its release.
type After struct {
	Holders []inspect.Holder `json:"holders"`
	inspect.Lease
}

// String describes the state.
func (a *After) String() string {
	if len(a.Holders) == 0 {
		return "free"
	}
	var owners []string
	for i := range a.Holders {
		owners = append(owners, inspect.OwnerAnd(a.Holders[i].Owner, a.Holders[i].Label))
	}
	if more := len(owners) - shownOwners; more > 0 {
		return fmt.Sprintf("held by %s and %d more", strings.Join(owners[:shownOwners], ", "), more)
	}
	return "held by " + strings.Join(owners, " and ")
}

const shownOwners = 3

func (f *Forced) readNow(ctx context.Context, on Target) {
	if !f.Taken || f.IsSemaphore() {
		return
	}
	if s, err := inspect.Read(ctx, on.Client, f.Name, inspect.Places); err == nil {
		now := forcedOf(s)
		now.readLabels(ctx, on.Dial)
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
	if f.IsSemaphore() || len(f.Holders) == 0 {
		return
	}
	_ = connect.Use(ctx, dial, func(c redis.Conn) error { return inspect.SetLabels(c, f.Holders, nil) })
}

// IsLock reports whether the key is a lock. Other hashes may be private.
func (f *Forced) IsLock() bool { return !f.odd }

// IsSemaphore reports whether the holders are permits.
func (f *Forced) IsSemaphore() bool { return f.Kind == string(inspect.Semaphore) }

// Heard describes the notified waiters.
func (f *Forced) Heard() string {
	switch {
	case f.Subscribers == nil || *f.Subscribers > 0:
		return notifiedTexts[f.Notified]
	case f.Notified == notifiedFirst:
		return fmt.Sprintf("no waiter was notified: no connection is subscribed for the first waiter, %s. "+
			"If it is dead, `redlatch evict %s` removes it from the queue, and `redlatch evict --all-dead %s` removes all dead waiters",
			sanitize.Word(f.first), inspect.Args(f.Name, f.first), inspect.Args(f.Name))
	case f.Notified == notifiedPlain:
		return "no waiter was notified: no connection of the master is subscribed to the channel of the plain lock. " +
			"Whether the fair lock of this name has a queue is unknown: a queued waiter gets the lock at its next poll"
	case f.IsSemaphore():
		return "no waiter was notified: no connection of the master is subscribed to the semaphore's channel"
	}
	return "no waiter was notified: no connection of the master is subscribed to the lock's channel"
}

func (f *Forced) subject() string {
	if f.IsSemaphore() {
		return fmt.Sprintf("semaphore %q", f.Name)
	}
	return fmt.Sprintf("lock %q", f.Name)
}

func (f *Forced) of(owners []string) (all []*inspect.Holder) {
	for i := range f.Holders {
		if len(owners) == 0 || isOneOf(f.Holders[i].Owner, owners) {
			all = append(all, &f.Holders[i])
		}
	}
	return all
}

// Losers returns the holders that lose or lost the lock.
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

// Others counts the other holders, and the readers with expired leases.
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

func (f *Forced) isHeldByAll(owners []string) bool {
	return !slices.ContainsFunc(owners, func(owner string) bool { return len(f.of([]string{owner})) == 0 })
}

// isRenewedByOthers reports whether other readers may renew these leases, as Redisson's readers do before version
// 4.4.
func (f *Forced) isRenewedByOthers(readers []string) bool {
	return f.Mode == protocol.ModeRead && slices.ContainsFunc(f.Holders, func(h inspect.Holder) bool {
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

func (f *Forced) whyUnknown() string {
	switch {
	case f.TTLMillis == nil && !f.IsSemaphore():
		return "the lock does not have a lease to renew"
	case f.IsSemaphore() && f.Holders[0].LeftMillis == nil:
		return "its lease never ends and needs no renewal"
	case f.Renewed == inspect.RenewedNo:
		return "its lease is not renewed, but it may have a fixed lease, or may be disconnected"
	}
	return "it was not watched long enough to see a renewal"
}

// hearing must be called before the release. It returns the kind of notification, the number of subscribers (nil if
// unknown), and the first waiter of a fair lock.
func (u *Unlock) hearing(ctx context.Context, now *look, from []string) (notified string, subscribers *int64, first string) {
	channel, notified := codec.LockChannel(u.Name), notifiedAll
	switch {
	case u.semaphore:
		channel = protocol.SemaphoreChannel(u.Name)
	case len(u.owners()) > 0 && now.stays(from):
		return notifiedNone, nil, ""
	case now.Mode != "":
		channel = protocol.ReadWriteChannel(u.Name)
	case !now.lock.ReadQueue():
		notified = notifiedPlain
	case now.lock.Waiting > 0:
		for _, w := range now.lock.Queue {
			if w.Deadline.IsZero() || w.Deadline.After(time.Now()) {
				counts, err := inspect.Listeners(ctx, u.Client, u.Name, w.Text)
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

func (f *Forced) stays(from []string) bool {
	return slices.ContainsFunc(f.Holders, func(h inspect.Holder) bool { return !h.IsOver() && !slices.Contains(from, h.Owner) })
}
