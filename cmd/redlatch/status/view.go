package status

import (
	"fmt"
	"io"
	"time"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// status is what there is to show of a lock.
type status struct {
	inspect.Named
	// Kind is what the lock looks like: "plain", "fair" when its queue is not empty,
	// "fenced" and "fair-fenced" when it has tokens, or "readwrite"; empty when it is free
	// and its queue is empty.
	Kind string `json:"kind,omitempty"`
	Held bool   `json:"held"`
	// ReplicaOf is the master of the server that was asked, left out for a master.
	ReplicaOf string `json:"replica_of,omitempty"`
	// Mode is what a read/write lock is held for, "read" or "write".
	Mode    string           `json:"mode,omitempty"`
	Holders []inspect.Holder `json:"holders"`
	inspect.Lease
	// Renewed is "yes" when the lease was seen to be renewed, "no" when it was not
	// although it was due, else "unknown"; "" when there is none.
	Renewed string `json:"renewed,omitempty"`
	// QueueLength is how many wait, nil when the queue was not read.
	QueueLength *int `json:"queue_length"`
	// Queue are the waiters, the next one first, as many as are shown; nil when it was not read.
	Queue []waiter `json:"queue"`
	// QueueError is why the queue was not read.
	QueueError string `json:"queue_error,omitempty"`
	// More describes the waiters that are not shown.
	More *more `json:"more,omitempty"`
	// Uncounted is why listeners could not be counted.
	Uncounted string `json:"counting_error,omitempty"`
	// Why says why a free lock with a queue is not taken, as far as is known.
	Why *why `json:"why_free,omitempty"`
	// Note is Why in words.
	Note string `json:"note,omitempty"`
	// Token is the last fencing token that was given, also of a lock that is free; left out
	// for a lock without.
	Token int64 `json:"token,omitempty"`
	// PlainWaiters is how many connections wait for the lock as for a plain one while
	// others are queued for it as for a fair one, or it is held as a read/write lock.
	PlainWaiters int64 `json:"plain_waiters,omitempty"`
	// ReadWriteWaiters is how many connections wait for the lock as for a read/write lock
	// while it is held as another kind.
	ReadWriteWaiters int64 `json:"read_write_waiters,omitempty"`
}

// waiter is one place in the queue.
type waiter struct {
	Position int `json:"position"`
	inspect.Owned
	// DeadlineMillis is the time to the deadline, negative when that is over, nil
	// when there is none.
	DeadlineMillis *int64 `json:"deadline_in_ms"`
	Subscribed     string `json:"subscribed"`
	inspect.Client
	// Label is that of the owner's client, empty when it has none.
	Label string `json:"label,omitempty"`
}

// statusOf makes a status of what was seen just now.
func statusOf(in *admin.Inspection, shape *listing.Shape, now time.Time) *status {
	s := &status{
		Named: inspect.NameOf(in.Name), Kind: string(shape.Kind), Held: len(in.Holders) > 0, Mode: shape.Mode,
		Holders: []inspect.Holder{}, Lease: inspect.LeaseOf(len(in.Holders) > 0, in.TTL),
	}
	for _, h := range shape.Holders {
		s.Holders = append(s.Holders, inspect.HolderOf(h, shape.Kind))
	}
	if in.Kind != inspect.KindFair {
		return s
	}
	s.Queue, s.QueueLength = []waiter{}, &in.Waiting
	for i := range in.Queue {
		s.Queue = append(s.Queue, waiterOf(&in.Queue[i], in.Queue[i].Position, now))
	}
	if in.Waiting > 0 && shape.Kind != listing.ReadWrite {
		s.Kind = string(listing.Fair)
	}
	return s
}

func waiterOf(q *admin.Waiter, place int, now time.Time) waiter {
	w := waiter{Position: place, Owned: inspect.OwnedBy(q.Text), Subscribed: inspect.Subscribed(q), Client: inspect.ClientOf(q.Text)}
	if !q.Deadline.IsZero() {
		left := q.Deadline.Sub(now).Milliseconds()
		w.DeadlineMillis = &left
	}
	return w
}

// print writes the status for people.
func (s *status) print(w io.Writer) {
	if s.Held {
		fmt.Fprintf(w, "lock %q is held\n", s.Name)
	} else {
		fmt.Fprintf(w, "lock %q is free\n", s.Name)
	}
	if s.Mode != "" {
		fmt.Fprintf(w, "  kind   %s\n", inspect.ModeText(s.Mode))
	}
	for i := range s.Holders {
		h := &s.Holders[i]
		fmt.Fprint(w, cli.WithDetails("  owner  "+sanitize.Word(h.Owner), "count "+sanitize.Word(string(h.Count))))
		if h.Kind != "unknown" || h.Label != "" || h.Mode != "" {
			fmt.Fprint(w, cli.Indented("", h.Describe(cli.Millis)))
		}
	}
	switch {
	case s.TTLMillis != nil:
		fmt.Fprintf(w, "  lease  %s\n", s.leaseText())
	case s.Held:
		fmt.Fprintln(w, "  lease  none: it stays until it is released")
	}
	if s.Token > 0 {
		fmt.Fprintf(w, "  token  %d\n", s.Token)
	}
	s.printQueue(w)
	if s.PlainWaiters+s.ReadWriteWaiters > 0 {
		fmt.Fprint(w, cli.Indented("mixed", s.mixed()))
	}
	s.printNote(w)
}

func (s *status) printQueue(w io.Writer) {
	if s.Queue == nil {
		fmt.Fprint(w, cli.Indented("queue", "not shown: "+sanitize.Line(s.QueueError)))
	}
	if s.length() == 0 {
		return
	}
	fmt.Fprintf(w, "  queue  %d waiting\n", s.length())
	printPlaces(w, s.Queue)
	if s.More != nil {
		fmt.Fprint(w, cli.Indented("", s.More.String()+s.howToSeeMore()))
		printPlaces(w, s.More.Last)
	}
}

// howToSeeMore names the flag that shows more of the queue, if there is one.
func (s *status) howToSeeMore() string {
	if len(s.Queue) == 0 {
		return ""
	}
	end := s.Queue[len(s.Queue)-1].Position
	switch {
	case end == len(s.Queue) && s.length() <= inspect.LookedAt:
		return " (--waiters 0 shows all)"
	case end < s.length():
		return fmt.Sprintf(" (--from %d shows the next ones)", end+1)
	}
	return ""
}

func printPlaces(w io.Writer, places []waiter) {
	for i := range places {
		q := &places[i]
		fmt.Fprint(w, cli.WithDetails(fmt.Sprintf("  %5d  %s", q.Position, inspect.Shown(q.Owner)), "deadline "+cli.Deadline(q.DeadlineMillis)))
		fmt.Fprint(w, cli.Indented("", "subscribed "+q.Subscribed+", "+q.Labelled(q.Label)))
	}
}

// printNote prints what there is to say of the queue.
func (s *status) printNote(w io.Writer) {
	if s.length() == 0 {
		return
	}
	switch {
	case s.Note != "":
		fmt.Fprint(w, cli.Indented("note", s.Note))
	case s.Uncounted != "":
		fmt.Fprint(w, cli.Indented("note", "listeners cannot be counted: "+s.Uncounted))
	}
}
