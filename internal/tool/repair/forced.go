package repair

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// Which waiters were notified that a lock is free. Waiters of a plain lock share one
// channel; of a queue only the first is notified, on a channel of its own.
const (
	notifiedAll   = "all"
	notifiedFirst = "first_in_queue"
	notifiedPlain = "all_but_queue"
)

// notifiedTexts are these in words.
var notifiedTexts = map[string]string{
	notifiedAll:   "all waiters were notified",
	notifiedFirst: "the first in the queue whose deadline is not over was notified",
	notifiedPlain: "the waiters of the plain lock were notified. Whether the fair lock of this name has a queue is " +
		"unknown: a waiter in it was not notified, and gets the lock when it next polls",
}

// Forced is what Unlock has found and done: the JSON of redlatch unlock --force.
type Forced struct {
	inspect.Named
	// Kind and Mode are those of a read/write lock, left out for others: "readwrite", and
	// "read" or "write".
	Kind    string           `json:"kind,omitempty"`
	Mode    string           `json:"mode,omitempty"`
	Holders []inspect.Holder `json:"holders"`
	inspect.Lease
	// Renewed is whether the lease is seen to be renewed: yes, no or unknown.
	Renewed string `json:"renewed"`
	// QueueLength is how many are in the queue of a fair lock, nil when it may not be read.
	QueueLength *int `json:"queue_length"`
	Taken       bool `json:"taken"`
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

	changed bool // it has another holder than at first
	shape   listing.Shape
	heard   hearing
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
	return "held by " + words(owners, " and ")
}

// readNow looks at a lock that was taken.
func (f *Forced) readNow(ctx context.Context, client *redlatch.Client) {
	if !f.Taken {
		return
	}
	if s, err := inspect.TakeSnapshot(ctx, client, f.Name); err == nil {
		now := forcedOf(&s)
		f.Now = &After{now.Holders, now.Lease}
	}
}

func forcedOf(s *inspect.Snapshot) *Forced {
	f := &Forced{
		Named: inspect.NameOf(s.Inspection.Name), Holders: []inspect.Holder{}, Lease: inspect.LeaseOf(s.Held(), s.Inspection.TTL),
		Renewed: inspect.RenewedUnknown, shape: inspect.ShapeOfInspection(s.Inspection),
	}
	if s.ReadQueue() {
		waiting := s.Inspection.Waiting
		f.QueueLength = &waiting
	}
	for _, h := range f.shape.Holders {
		f.Holders = append(f.Holders, inspect.HolderOf(h, f.shape.Kind))
	}
	if f.shape.Kind == listing.ReadWrite {
		f.Kind, f.Mode = string(listing.ReadWrite), f.shape.Mode
	}
	return f
}

// readDetails looks up the labels of the holders, and what each reader has left. Without them
// it tells less.
func (f *Forced) readDetails(ctx context.Context, dial Dial) {
	c, err := dial(ctx)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }() // only read from
	var owners []string
	for i := range f.Holders {
		owners = append(owners, f.Holders[i].Owner)
	}
	labels, err := listing.Labels(c, owners)
	if err != nil {
		return
	}
	for i := range f.Holders {
		f.Holders[i].Label = labels[f.Holders[i].Owner]
	}
	if f.Kind != "" {
		inspect.ReadLeases(c, f.Name, f.Holders)
	}
}

// IsLock reports whether it is a lock: what else it holds may be private.
func (f *Forced) IsLock() bool { return f.shape.Odd == "" }

// Heard says which waiters were notified that the lock was taken.
func (f *Forced) Heard() string { return f.heard.text() }

// note notes why the lock was not taken.
func (f *Forced) note(err error) {
	var r *Refusal
	if errors.As(err, &r) {
		f.Refused = r.Why
	}
}

// unfit returns why this lock cannot be taken at all, "" when it can.
func (f *Forced) unfit() string {
	if f.shape.Odd != "" {
		return oddHash(f.Name, f.shape.Odd)
	}
	return ""
}

// alive returns the holders that are neither stated to be dead nor readers whose own lease is
// over. The owner of a writer stands for what it reads, too.
func (f *Forced) alive(dead []string) (owners []string) {
	for i := range f.Holders {
		h := &f.Holders[i]
		if !h.IsOver() && !isOneOf(h, dead) {
			owners = append(owners, h.Owner)
		}
	}
	return owners
}

// isHeldBy reports whether one of the owners has the lock.
func (f *Forced) isHeldBy(owners []string) bool {
	isOne := func(h inspect.Holder) bool { return isOneOf(&h, owners) }
	return slices.ContainsFunc(f.Holders, isOne)
}

func isOneOf(h *inspect.Holder, owners []string) bool {
	bare, _ := listing.Bare(h.Owner)
	return slices.ContainsFunc(owners, func(owner string) bool {
		other, _ := listing.Bare(owner)
		return other == bare
	})
}

// stated returns the flags that state that these owners are dead.
func stated(owners []string) string { return "--dead " + words(owners, " --dead ") }

// words returns owners in one line.
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
	case f.TTLMillis == nil:
		return "the lock has no lease, so there is nothing to renew"
	case f.Renewed == inspect.RenewedNo:
		return "its lease is not renewed, but it may have a lease of its own, or be cut off"
	}
	return "it was not watched long enough to see whether its lease is renewed"
}
