package unlock

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/tool/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/internal/tool/output"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// Why a lock was not taken.
const (
	refusedAlive    = "alive"
	refusedUnknown  = "not_known_dead"
	refusedOther    = "held_by_another"
	refusedChanged  = "changed_hands"
	refusedKind     = "other_kind"
	refusedFree     = "free"
	refusedDeclined = "declined"
)

// How it went.
const (
	outcomeTaken = "taken"
	outcomeFree  = "free"
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

// forced is the output of unlock --force.
type forced struct {
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
	Now *after `json:"now,omitempty"`

	changed bool // it has another holder than at first
	shape   listing.Shape
	heard   hearing
}

// after is a lock after it was taken from its holder.
type after struct {
	Holders []inspect.Holder `json:"holders"`
	inspect.Lease
}

// readNow looks at a lock that was taken.
func (f *forced) readNow(ctx context.Context, client *redlatch.Client) {
	if !f.Taken {
		return
	}
	if s, err := inspect.TakeSnapshot(ctx, client, f.Name); err == nil {
		now := forcedOf(&s)
		f.Now = &after{now.Holders, now.Lease}
	}
}

// String returns the state in words.
func (a *after) String() string {
	if len(a.Holders) == 0 {
		return "free"
	}
	var owners []string
	for i := range a.Holders {
		owners = append(owners, a.Holders[i].Owner)
	}
	return "held by " + words(owners, " and ")
}

func forcedOf(s *inspect.Snapshot) *forced {
	f := &forced{
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
func (f *forced) readDetails(ctx context.Context, srv *connect.Server) {
	c, err := srv.Dial(ctx)
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

// refuse notes why the lock is not taken, and makes the error of it.
func (f *forced) refuse(code int, why, format string, args ...any) error {
	f.Refused = why
	return cli.Errorf(code, format, args...)
}

// unfit returns why this lock cannot be taken at all, "" when it can.
func (f *forced) unfit() string {
	if f.shape.Odd != "" {
		return fmt.Sprintf("%q is a hash, and no lock of Redisson's: %s", f.Name, f.shape.Odd)
	}
	return ""
}

// alive returns the holders that are neither stated to be dead nor readers whose own lease is
// over. The owner of a writer stands for what it reads, too.
func (f *forced) alive(dead []string) (owners []string) {
	for i := range f.Holders {
		h := &f.Holders[i]
		if !h.IsOver() && !isOneOf(h, dead) {
			owners = append(owners, h.Owner)
		}
	}
	return owners
}

// isHeldBy reports whether one of the owners has the lock.
func (f *forced) isHeldBy(owners []string) bool {
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

// isFree notes that there is nothing to take.
func (f *forced) isFree() error {
	f.Refused = refusedFree
	return &cli.ExitError{Code: codeFree} // printed as the state that was found
}

// whyUnknown returns why the holder may live.
func (f *forced) whyUnknown() string {
	switch {
	case f.TTLMillis == nil:
		return "the lock has no lease, so there is nothing to renew"
	case f.Renewed == inspect.RenewedNo:
		return "its lease is not renewed, but it may have a lease of its own, or be cut off"
	}
	return "it was not watched long enough to see whether its lease is renewed"
}

// leaseText returns what the lease has left, and whether it is renewed.
func (f *forced) leaseText() string {
	switch {
	case f.TTLMillis == nil:
		return "none: it stays until it is released"
	case f.Renewed == inspect.RenewedYes:
		return output.Millis(*f.TTLMillis) + " left, renewed"
	case f.Renewed == inspect.RenewedNo:
		return output.Millis(*f.TTLMillis) + " left, not renewed when it was due"
	}
	return output.Millis(*f.TTLMillis) + " left, fixed or renewed"
}

// describe names the owners that lose the lock, in one line.
func (f *forced) describe() string {
	var all []string
	for i := range f.Holders {
		h := &f.Holders[i]
		all = append(all, fmt.Sprintf("%s (%s, count %s)", sanitize.Word(h.Owner), h.Describe(output.Millis), sanitize.Word(string(h.Count))))
	}
	return strings.Join(all, ", ") + ", lease " + f.leaseText()
}

// print prints the lock and the outcome.
func (o *unlockOptions) print(cmd *cobra.Command, f *forced) {
	if o.json {
		_ = cli.PrintJSON(cmd, f) // an error is ignored: there is no other output to report it on
		return
	}
	if !o.shown && f.shape.Odd == "" { // the fields of a hash that is not a lock may be private
		f.print(cmd.OutOrStdout())
	}
	if f.Taken {
		fmt.Fprint(cmd.OutOrStdout(), output.Indented("taken", f.heard.text()))
	}
	if f.Now != nil {
		fmt.Fprint(cmd.OutOrStdout(), output.Indented("now", f.Now.String()))
	}
}

// print writes the text output.
func (f *forced) print(w io.Writer) {
	if len(f.Holders) == 0 {
		fmt.Fprintf(w, "lock %q is free\n", f.Name)
		return
	}
	state := "is held"
	switch {
	case f.Taken && len(f.Holders) > 1:
		state = "was taken from its holders"
	case f.Taken:
		state = "was taken from its holder"
	}
	fmt.Fprintf(w, "lock %q %s\n", f.Name, state)
	if f.Mode != "" {
		fmt.Fprintf(w, "  kind   %s\n", inspect.ModeText(f.Mode))
	}
	for i := range f.Holders {
		h := &f.Holders[i]
		fmt.Fprint(w, output.WithDetails("  owner  "+sanitize.Word(h.Owner), "count "+sanitize.Word(string(h.Count))))
		fmt.Fprint(w, output.Indented("", h.Describe(output.Millis)))
	}
	fmt.Fprintf(w, "  lease  %s\n", f.leaseText())
	switch {
	case f.QueueLength == nil:
		fmt.Fprintln(w, "  queue  not shown: this user may not read it")
	case *f.QueueLength > 0:
		fmt.Fprintf(w, "  queue  %d waiting\n", *f.QueueLength)
	}
}
