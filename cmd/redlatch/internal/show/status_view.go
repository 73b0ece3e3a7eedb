package show

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/rsemaphore"
)

type status struct {
	inspect.View
	ReplicaOf string `json:"replica_of,omitempty"`
	Renewed   string `json:"renewed,omitempty"`
	// QueueLength is nil if the queue was not read.
	QueueLength *int             `json:"queue_length"`
	Queue       []inspect.Waiter `json:"queue"`
	QueueError  string           `json:"queue_error,omitempty"`
	More        *more            `json:"more,omitempty"`
	Uncounted   string           `json:"counting_error,omitempty"`
	Why         *why             `json:"why_free,omitempty"`
	Note        string           `json:"note,omitempty"`
	// Deadlock is a circle of waits that the lock is part of.
	Deadlock    inspect.Circle `json:"deadlock,omitempty"`
	ClientGuess *guess         `json:"client_guess,omitempty"`

	waiting int64 // connections that wait without a queue
}

func statusOf(seen *inspect.Snapshot) *status {
	lock := inspect.Lock{Name: seen.Name, Kind: seen.Kind, Mode: seen.Mode, Holders: seen.Holders, TTL: seen.TTL}
	s := &status{View: lock.View(), QueueError: seen.QueueError}
	if !seen.ReadQueue() {
		return s
	}
	s.Queue, s.QueueLength = []inspect.Waiter{}, &seen.Waiting
	for i := range seen.Queue {
		s.Queue = append(s.Queue, inspect.WaiterOf(&seen.Queue[i], seen.Answered))
	}
	return s
}

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
			fmt.Fprint(w, cli.IndentedFor(w, "", h.Describe(cli.Millis)))
		}
	}
	if s.ClientGuess != nil {
		fmt.Fprint(w, cli.IndentedFor(w, "guess", s.ClientGuess.String()))
	}
	switch {
	case s.TTLMillis != nil:
		fmt.Fprintf(w, "  lease  %s\n", s.leaseText())
	case s.Held:
		fmt.Fprintln(w, "  lease  none: held until released")
	}
	if s.Token > 0 {
		fmt.Fprintf(w, "  token  %d\n", s.Token)
	}
	s.printQueue(w)
	if s.PlainWaiters+s.ReadWriteWaiters > 0 {
		fmt.Fprint(w, cli.IndentedFor(w, "mixed", s.mixed()))
	}
	s.printNote(w)
	if len(s.Deadlock) > 0 {
		fmt.Fprintln(w, "  deadlock, until one of these waits or leases ends:")
		for _, line := range s.Deadlock.Lines() {
			fmt.Fprint(w, cli.IndentedFor(w, "", line))
		}
	}
}

func (s *status) printQueue(w io.Writer) {
	if s.Queue == nil {
		fmt.Fprint(w, cli.IndentedFor(w, "queue", "not shown: "+sanitize.Line(s.QueueError)))
	}
	if s.length() == 0 {
		return
	}
	fmt.Fprintf(w, "  queue  %d waiting\n", s.length())
	for i := range s.Queue {
		q := &s.Queue[i]
		fmt.Fprint(w, cli.WithDetails(fmt.Sprintf("  %5d  %s", q.Position, inspect.Shown(q.Owner)), "deadline "+cli.Deadline(q.DeadlineMillis)))
		fmt.Fprint(w, cli.IndentedFor(w, "", "subscribed "+q.Subscribed+", "+q.Labelled(q.Label)))
	}
	if s.More != nil {
		fmt.Fprint(w, cli.IndentedFor(w, "", s.More.String()+s.howToSeeMore()))
	}
}

func (s *status) howToSeeMore() string {
	if len(s.Queue) == 0 {
		return ""
	}
	end := s.Queue[len(s.Queue)-1].Position
	switch {
	case end == len(s.Queue) && s.length() <= inspect.LookedAt:
		return " (--waiters 0 shows all)"
	case end < s.length():
		return fmt.Sprintf(" (--from %d shows the next)", end+1)
	}
	return ""
}

func (s *status) leaseText() string {
	left := limits.FromMillis(*s.TTLMillis)
	said := cli.Millis(*s.TTLMillis) + " left"
	switch s.Renewed {
	case inspect.RenewedYes:
		return said + ", renewed"
	case inspect.RenewedNo:
		return said + ", not renewed when due: fixed, or the holder is gone"
	case inspect.RenewedUnknown:
		return fmt.Sprintf("%s, fixed or renewed (--for %s would show)", said,
			(inspect.RenewalDue(left) + inspect.Interval).Truncate(time.Second))
	}
	return said
}

func (s *status) printNote(w io.Writer) {
	if s.length() == 0 {
		return
	}
	switch {
	case s.Note != "":
		fmt.Fprint(w, cli.IndentedFor(w, "note", s.Note))
	case s.Uncounted != "":
		fmt.Fprint(w, cli.IndentedFor(w, "note", "cannot count subscribers: "+s.Uncounted))
	}
}

const shownPermits = 20

type counter struct {
	inspect.ShownNumber
	Permits []permit `json:"permits"`
}

type permit struct {
	ID string `json:"id"`
	// LeftMillis is 0 for an expired lease. Nil means no lease.
	LeftMillis *int64 `json:"left_ms"`
}

func readCounter(ctx context.Context, srv *connect.Server, client *redlatch.Client, name string) *counter {
	in, err := rsemaphore.NewExpirable(client, name).Inspect(ctx)
	if err != nil || !in.Exists {
		return nil
	}
	var found *inspect.Lock
	err = connect.Use(ctx, srv.Dial, func(c redis.Conn) (err error) {
		found, err = inspect.NumberAt(ctx, c, name)
		return err
	})
	if err != nil || found == nil {
		return nil
	}
	s := &counter{ShownNumber: found.Shown(), Permits: []permit{}}
	for _, p := range in.Permits {
		s.Permits = append(s.Permits, permit{p.ID, inspect.LeaseOf(true, p.Left).TTLMillis})
	}
	return s
}

func (s *counter) print(w io.Writer) {
	fmt.Fprintf(w, "%q is not a lock but a number: %d\n", s.Name, s.Available)
	if s.Kind != inspect.Latch {
		permits, are := "permits", "are"
		if s.Available == 1 {
			permits = "permit"
		}
		if s.Taken == 1 {
			are = "is"
		}
		said := fmt.Sprintf("as a semaphore it has %d %s available, %d %s taken", s.Available, permits, s.Taken, are)
		fmt.Fprint(w, cli.IndentedFor(w, "permit", said+waitFor(s.PermitWaiters)))
	}
	if s.Kind != inspect.Semaphore {
		said := "as a count-down latch it is open"
		if s.Available > 0 {
			said = fmt.Sprintf("as a count-down latch it is closed: %d to count down", s.Available)
		}
		fmt.Fprint(w, cli.IndentedFor(w, "latch", said+waitFor(s.LatchWaiters)))
	}
	if s.TTLMillis != nil {
		fmt.Fprintf(w, "  lives  %s\n", cli.Millis(*s.TTLMillis))
	}
	for i, p := range s.Permits {
		if i == shownPermits {
			fmt.Fprint(w, cli.IndentedFor(w, "", fmt.Sprintf("and %d more (--json shows up to %d)", s.Taken-int64(i), len(s.Permits))))
			return
		}
		left := "never ends"
		switch {
		case p.LeftMillis == nil:
		case *p.LeftMillis == 0:
			left = "its lease has expired"
		default:
			left = cli.Millis(*p.LeftMillis) + " left"
		}
		fmt.Fprint(w, cli.WithDetails("  permit "+p.ID, left))
	}
}

func waitFor(n int64) string {
	if n == 0 {
		return ""
	}
	return "; " + connections(n) + " for it"
}
