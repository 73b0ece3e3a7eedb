// Package evict is the command redlatch evict: it evicts a dead waiter from the queue of
// a fair lock.
package evict

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/transport"
)

const evictHelp = `Evicts the waiter OWNER, as redlatch status shows it, from the queue of the
fair lock NAME. If the lock is free, the next in the queue is woken.

Clients of Redlatch that wait for a lock evict dead waiters by themselves; this
command is for queues in which none of them waits, or when that takes too long.

A waiter whose channel has a subscriber is alive and stays, and so does one
whose subscribers cannot be counted, unless --even-if-alive is given. One that
has no subscriber may be about to subscribe, or to reconnect: redlatch status
--for 40s looks longer. A live waiter that is evicted queues anew, as the last;
no lock is lost by that.

With --all-dead all waiters are evicted that have no subscriber now and none
after --for. Each is looked at once more before it is evicted. Queues of more
than 100,000 are cleared from the end in parts of as many, with --for for each
part, and at most 10,000 evicted waiters are shown.

Exit codes:
  0  OWNER was evicted, or with --all-dead what was dead, though it be nothing
  1  it was not: it is alive, is not queued, or something failed
  2  the server is a replica, where nothing can be written, or the command
     line or the address is wrong`

// evicted is the output of evict.
type evicted struct {
	inspect.Named
	place
	// Next is the next owner in the queue, nil when it is empty.
	Next *nextInQueue `json:"next"`

	absent int // how many of those that are left have no subscriber: of the first inspect.LookedAt
}

// place is a place in the queue that a waiter had.
type place struct {
	inspect.Owned
	inspect.Client
	Position int `json:"position"`
	// DeadlineMillis is how far its deadline was away, as in waiter.
	DeadlineMillis *int64 `json:"deadline_in_ms"`
	Subscribed     string `json:"subscribed"`
}

// nextInQueue is the next owner in the queue.
type nextInQueue struct {
	inspect.Owned
	inspect.Client
	// Notified is true when the lock was free, so that it was sent its wake-up.
	Notified bool `json:"notified"`
	// Subscribed is whether a connection is there that gets the wake-up.
	Subscribed string `json:"subscribed"`

	held bool // the lock is held
}

// New returns the command.
func New(g *cli.Globals) *cobra.Command {
	var asJSON, force bool
	all := &allDead{atOnce: 100_000}
	var names cli.Names
	cmd := &cobra.Command{
		Use:   "evict NAME OWNER|--all-dead",
		Short: "Evict a dead waiter from the queue of a fair lock",
		Long:  evictHelp,
		Example: `  redlatch status --for 40s billing-run
  redlatch evict billing-run 71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57
  redlatch evict --all-dead billing-run`,
		Args: func(cmd *cobra.Command, args []string) error { return all.args(cmd, args) },
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := all.check(cmd, force); err != nil {
				return err
			}
			args, err := names.Read(args...)
			if err != nil {
				return err
			}
			if all.on {
				return all.run(cmd, g, args[0], asJSON)
			}
			var done *evicted
			err = onMaster(cmd.Context(), g, args[0], func(t repair.Target) error {
				e, err := (&repair.Evict{Target: t, Name: args[0], Owner: args[1], EvenIfAlive: force}).Run(cmd.Context())
				if err != nil {
					return notEvicted(err)
				}
				done = evictedOf(args[0], e, time.Now())
				done.look(cmd.Context(), t.Client)
				return nil
			})
			if err != nil {
				return err
			}
			if asJSON {
				return cli.PrintJSON(cmd, done)
			}
			done.print(cmd.OutOrStdout())
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "even-if-alive", false,
		"evict it although its channel has a subscriber, or although that cannot be counted")
	names.Register(cmd, "NAME and OWNER are")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all.on, "all-dead", false, "evict all waiters that have no subscriber")
	cmd.Flags().DurationVar(&all.look, "for", repair.AbsentFor, "with --all-dead, for how long a waiter must have none")
	return cmd
}

// onMaster is [cli.WithServer] for what writes.
func onMaster(ctx context.Context, g *cli.Globals, name string, do func(repair.Target) error) error {
	return cli.WithServer(ctx, g, name, func(srv *connect.Server, client *redlatch.Client) error {
		if err := cli.NeedMaster(ctx, srv); err != nil {
			return err
		}
		return do(repair.Target{Client: client, Dial: srv.Dial})
	})
}

// notEvicted gives errors that are not the server's their exit code.
func notEvicted(err error) error {
	var refusal *transport.ServerError
	if errors.Is(err, redlatch.ErrNotSent) || errors.Is(err, redlatch.ErrUncertain) || errors.As(err, &refusal) {
		return err
	}
	return &cli.ExitError{Code: 1, Err: err}
}

func placeOf(w *admin.Waiter, now time.Time) place {
	p := place{Owned: inspect.OwnedBy(w.Text), Client: inspect.ClientOf(w.Text), Position: w.Position, Subscribed: inspect.Subscribed(w)}
	if !w.Deadline.IsZero() {
		left := w.Deadline.Sub(now).Milliseconds()
		p.DeadlineMillis = &left
	}
	return p
}

func evictedOf(name string, e *admin.Eviction, now time.Time) *evicted {
	out := &evicted{Named: inspect.NameOf(name), place: placeOf(&e.Waiter, now)}
	if e.Next != "" {
		out.Next = &nextInQueue{Owned: inspect.OwnedBy(e.Next), Client: inspect.ClientOf(e.Next), Notified: e.Woken, held: !e.Woken, Subscribed: inspect.SubscribedUnknown}
	}
	return out
}

// look finds out what of the queue that is left looks dead.
func (e *evicted) look(ctx context.Context, client *redlatch.Client) {
	if e.Next == nil {
		return
	}
	e.Next.look(ctx, client, e.Name)
	left := inspect.Part{Name: e.Name, First: 1, Last: inspect.LookedAt}
	if absent, err := left.Absent(ctx, client, nil); err == nil {
		e.absent = len(absent)
	}
}

// look finds out whether the next in the queue of the lock gets its wake-up.
func (n *nextInQueue) look(ctx context.Context, client *redlatch.Client, name string) {
	if n == nil {
		return
	}
	counts, err := admin.Listeners(ctx, rfairlock.New(client, name), n.Owner)
	switch {
	case err != nil || len(counts) != 1: // it stays unknown
	case counts[0] > 0:
		n.Subscribed = inspect.SubscribedYes
	default:
		n.Subscribed = n.without(ctx, client, name)
	}
}

// without returns whether the next in the queue, to whose channel none is subscribed now, was
// subscribed when its wake-up was sent: it was if it holds the lock since, and one that has left
// the queue may have been.
func (n *nextInQueue) without(ctx context.Context, client *redlatch.Client, name string) string {
	in, err := inspect.Lock(ctx, client, name, 1)
	switch {
	case err != nil:
		return inspect.SubscribedUnknown
	case slices.ContainsFunc(in.Holders, func(h admin.Holder) bool { return h.Text == n.Owner }):
		return inspect.SubscribedYes
	case len(in.Queue) == 0 || in.Queue[0].Text != n.Owner:
		return inspect.SubscribedUnknown
	}
	return inspect.SubscribedNo
}

// note says what became of the next in the queue.
func (n *nextInQueue) note() string {
	switch {
	case n.held:
		return "subscribed " + n.Subscribed + ", not woken: the lock is held"
	case !n.Notified:
		return "subscribed " + n.Subscribed + ", not woken: it was the next one before"
	case n.Subscribed == inspect.SubscribedNo:
		return "subscribed no: the lock is free, and its wake-up was sent, but no client was there to get it"
	}
	return "subscribed " + n.Subscribed + ", woken: the lock is free"
}

// print writes the text output.
func (e *evicted) print(w io.Writer) {
	fmt.Fprintln(w, cli.Fit(w, fmt.Sprintf("lock %q: a waiter was evicted from the queue", e.Name)))
	e.place.print(w)
	e.Next.print(w)
	command := "`redlatch evict --all-dead " + inspect.Args(e.Name) + "`"
	switch {
	case e.absent == 1:
		fmt.Fprint(w, cli.Indented("left", "1 waiter has no subscriber: "+command+" evicts it if it is dead"))
	case e.absent > 1:
		number := strconv.Itoa(e.absent)
		if e.absent == inspect.LookedAt {
			number = "at least " + number
		}
		fmt.Fprint(w, cli.Indented("left", number+" waiters have no subscriber: "+command+" evicts those that are dead"))
	}
}

func (p *place) print(w io.Writer) {
	fmt.Fprintf(w, "  owner  %s\n", inspect.Shown(p.Owner))
	fmt.Fprint(w, cli.Indented("", p.String()+", place "+strconv.Itoa(p.Position)+
		", subscribed "+p.Subscribed+", deadline "+cli.Deadline(p.DeadlineMillis)))
}

func (n *nextInQueue) print(w io.Writer) {
	if n == nil {
		fmt.Fprintln(w, "  next   none: the queue is empty")
		return
	}
	fmt.Fprintf(w, "  next   %s\n", inspect.Shown(n.Owner))
	fmt.Fprint(w, cli.Indented("", n.String()+", "+n.note()))
}
