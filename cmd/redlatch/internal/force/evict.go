// Package force contains the commands that affect other clients: evict and unlock.
//
//	unlock:  look ─▶ is the lease renewed? ─▶ ask ─▶ look once more ─▶ take ─▶ audit
package force

import (
	"cmp"
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
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/transport"
)

const evictHelp = `Evicts the waiter OWNER, as shown by redlatch status, from the queue of the
fair lock NAME. If the lock is free, the next waiter is notified. Redlatch
clients that wait for the lock evict dead waiters automatically.

A waiter whose channel has a subscriber is alive. It is kept, as is a waiter
whose subscribers cannot be counted, unless --even-if-alive is given. A waiter
without a subscriber may be about to subscribe or reconnecting; redlatch status
--for 40s checks for longer. An evicted live waiter rejoins at the end of the
queue. Eviction never releases a lock.

--all-dead evicts all waiters that have no subscriber now and none after --for.
Queues of more than 100,000 are processed from the end in batches of that size.
At most 10,000 evicted waiters are shown.

Exit codes:
  0  OWNER was evicted, or with --all-dead all dead waiters, if any
  1  not evicted: OWNER is alive or not queued, or the command failed
  2  the server is a read-only replica, or the command line or the address is
     invalid`

type evicted struct {
	inspect.Named
	inspect.Waiter
	Next *nextInQueue `json:"next"`

	hint   func(string) string // adds the context to commands
	absent int                 // waiters without a subscriber among the first inspect.LookedAt
}

type nextInQueue struct {
	inspect.Owned
	inspect.Client
	Notified   bool   `json:"notified"`
	Subscribed string `json:"subscribed"`

	held bool
}

// NewEvict returns the command evict.
func NewEvict(g *cli.Globals) *cobra.Command {
	var force bool
	var format cli.Output
	all := &allDead{atOnce: 100_000}
	var names cli.Names
	cmd := &cobra.Command{
		Use:   "evict NAME OWNER|--all-dead",
		Short: "Evict a dead waiter from a fair lock's queue",
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
			var done interface{ print(w io.Writer) }
			ctx, name := cmd.Context(), args[0]
			err = cli.OnMaster(ctx, g, name, func(t repair.Target) (err error) {
				if all.on {
					done, err = all.run(ctx, t, name)
				} else {
					done, err = evictOne(ctx, g.Hint, &repair.Evict{Target: t, Name: name, Owner: args[1], EvenIfAlive: force})
				}
				return err
			})
			if some, is := done.(*allEvicted); err != nil && (!is || some == nil || some.EvictedCount == 0) {
				return err
			}
			return errors.Join(format.Print(cmd, done, done.print), err)
		},
	}
	cmd.Flags().BoolVar(&force, "even-if-alive", false,
		"evict even if its channel has a subscriber, or subscribers cannot be counted")
	names.Register(cmd, "NAME and OWNER are")
	format.Register(cmd, "")
	cmd.Flags().BoolVar(&all.on, "all-dead", false, "evict all waiters without a subscriber")
	cmd.Flags().DurationVar(&all.look, "for", repair.AbsentFor, "with --all-dead, how long a waiter must have no subscriber")
	return cmd
}

func notEvicted(err error) error {
	var refusal *transport.ServerError
	if errors.Is(err, redlatch.ErrNotSent) || errors.Is(err, redlatch.ErrUncertain) || errors.As(err, &refusal) {
		return err
	}
	return &cli.ExitError{Code: 1, Err: err}
}

func evictOne(ctx context.Context, hint func(string) string, e *repair.Evict) (*evicted, error) {
	done, err := e.Run(ctx)
	if err != nil {
		return nil, notEvicted(err)
	}
	out := &evicted{hint: hint, Named: inspect.NameOf(e.Name), Waiter: inspect.WaiterOf(&done.Waiter, time.Now())}
	if done.Next == "" {
		return out, nil
	}
	out.Next = nextOf(ctx, e.Client, e.Name, &nextInQueue{Owned: inspect.OwnedBy(done.Next), Notified: done.Woken, held: !done.Woken})
	left := inspect.Part{Name: e.Name, First: 1, Last: inspect.LookedAt}
	if absent, err := left.Absent(ctx, e.Client, nil); err == nil {
		out.absent = len(absent)
	}
	return out, nil
}

func nextOf(ctx context.Context, client *redlatch.Client, name string, n *nextInQueue) *nextInQueue {
	n.Client, n.Subscribed = inspect.ClientOf(n.Owner), inspect.SubscribedUnknown
	counts, err := inspect.Listeners(ctx, client, name, n.Owner)
	switch {
	case err != nil: // the state remains unknown
	case counts[0] > 0:
		n.Subscribed = inspect.SubscribedYes
	default:
		n.Subscribed = n.without(ctx, client, name)
	}
	return n
}

// without returns the state of an owner without a subscriber.
func (n *nextInQueue) without(ctx context.Context, client *redlatch.Client, name string) string {
	in, err := inspect.Read(ctx, client, name, 1)
	switch {
	case err != nil:
		return inspect.SubscribedUnknown
	case slices.ContainsFunc(in.Holders, func(h inspect.Holder) bool { return h.Owner == n.Owner }):
		return inspect.SubscribedYes
	case len(in.Queue) == 0 || in.Queue[0].Text != n.Owner:
		return inspect.SubscribedUnknown
	}
	return inspect.SubscribedNo
}

func (n *nextInQueue) note() string {
	switch {
	case n.held:
		return "subscribed " + n.Subscribed + ", not notified: the lock is held"
	case !n.Notified:
		return "subscribed " + n.Subscribed + ", not notified: it was already next"
	case n.Subscribed == inspect.SubscribedNo:
		return "subscribed no: the lock is free and was announced, but no client received the notification"
	}
	return "subscribed " + n.Subscribed + ", notified: the lock is free"
}

func (e *evicted) print(w io.Writer) {
	fmt.Fprintln(w, cli.Fit(w, fmt.Sprintf("lock %q: a waiter was evicted from the queue", e.Name)))
	printWaiter(w, &e.Waiter)
	e.Next.print(w)
	command := e.hint("`redlatch evict --all-dead " + inspect.Args(e.Name) + "`")
	switch {
	case e.absent == 1:
		fmt.Fprint(w, cli.Indented("left", "1 waiter has no subscriber: "+command+" evicts it if it is dead"))
	case e.absent > 1:
		number := strconv.Itoa(e.absent)
		if e.absent == inspect.LookedAt {
			number = "at least " + number
		}
		fmt.Fprint(w, cli.Indented("left", number+" waiters have no subscriber: "+command+" evicts the dead ones"))
	}
}

func printWaiter(w io.Writer, p *inspect.Waiter) {
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

type allDead struct {
	on     bool
	look   time.Duration
	atOnce int // number of places to process together
}

type allEvicted struct {
	inspect.Named
	Evicted      []inspect.Waiter `json:"evicted"`
	EvictedCount int              `json:"evicted_count"`
	QueueLength  int              `json:"queue_length"`
	Next         *nextInQueue     `json:"next"`

	partial bool // QueueLength and Next are unknown
}

func (a *allDead) args(cmd *cobra.Command, args []string) error {
	if a.on {
		return cobra.ExactArgs(1)(cmd, args)
	}
	return cobra.ExactArgs(2)(cmd, args)
}

func (a *allDead) check(cmd *cobra.Command, force bool) error {
	switch {
	case a.on && force:
		return cli.Usagef("--all-dead and --even-if-alive are mutually exclusive")
	case !a.on && cmd.Flags().Changed("for"):
		return cli.Usagef("--for requires --all-dead")
	case a.look < 0:
		return cli.Usagef("--for must not be negative")
	}
	return nil
}

func (a *allDead) run(ctx context.Context, t repair.Target, name string) (*allEvicted, error) {
	if err := t.CheckIsLock(ctx, name); err != nil {
		return nil, notEvicted(err)
	}
	done, err := a.evict(ctx, t.Client, name)
	return done, a.failed(name, done, err)
}

func (a *allDead) failed(name string, done *allEvicted, err error) error {
	if errors.Is(err, admin.ErrNotCounted) {
		err = cli.Errorf(1, "lock %q: cannot detect dead waiters: %s", name, inspect.NotCounted(err))
	}
	if err != nil && done != nil && done.EvictedCount > 0 {
		return fmt.Errorf("after %d waiters of lock %q were evicted: %w", done.EvictedCount, name, err)
	}
	return err
}

// evict processes the queue from its end, so that it wakes the first of the remaining waiters. If it fails, it
// returns the waiters that it has evicted.
func (a *allDead) evict(ctx context.Context, client *redlatch.Client, name string) (*allEvicted, error) {
	in, err := admin.InspectPart(ctx, rfairlock.New(client, name), 1, 1)
	if err != nil {
		return nil, err
	}
	out, woken := &allEvicted{Named: inspect.NameOf(name), Evicted: []inspect.Waiter{}}, ""
	for last := in.Waiting; last > 0; last -= a.atOnce {
		at := inspect.Part{Name: name, First: max(1, last-a.atOnce+1), Last: last}
		first, err := a.evictAt(ctx, client, at, out)
		if err != nil {
			out.partial, out.QueueLength = true, in.Waiting-out.EvictedCount
			return out, err
		}
		woken = cmp.Or(first, woken) // there may not be dead waiters in earlier parts
	}
	err = out.readNext(ctx, client, woken)
	out.partial = err != nil
	return out, err
}

// evictAt evicts waiters that are absent at two inspections. It returns the owner that was woken.
func (a *allDead) evictAt(ctx context.Context, client *redlatch.Client, at inspect.Part, out *allEvicted) (woken string, err error) {
	evicted, woken, err := repair.EvictDead(ctx, client, at, a.look)
	out.add(evicted)
	return woken, err
}

func (e *allEvicted) add(evicted []admin.Waiter) {
	e.EvictedCount += len(evicted)
	places := []inspect.Waiter{}
	for i := range evicted[:min(len(evicted), inspect.LookedAt)] {
		places = append(places, inspect.WaiterOf(&evicted[i], time.Now()))
	}
	e.Evicted = append(places, e.Evicted[:min(len(e.Evicted), inspect.LookedAt-len(places))]...)
}

func (e *allEvicted) readNext(ctx context.Context, client *redlatch.Client, woken string) error {
	now, err := inspect.Read(ctx, client, e.Name, 1)
	if err != nil {
		return err
	}
	e.QueueLength = now.Waiting
	if len(now.Queue) > 0 {
		next := now.Queue[0].Text
		e.Next = nextOf(ctx, client, e.Name, &nextInQueue{Owned: inspect.OwnedBy(next), Notified: next == woken, held: now.Held()})
	}
	return nil
}

func (e *allEvicted) print(w io.Writer) {
	said := fmt.Sprintf("%d waiters were evicted from the queue", e.EvictedCount)
	switch e.EvictedCount {
	case 0:
		said = "no waiter was evicted: all have a subscriber"
	case 1:
		said = "a waiter was evicted from the queue"
	}
	if len(e.Evicted) == 0 && e.QueueLength == 0 {
		said = "no waiter was evicted: the queue is empty"
	}
	fmt.Fprintln(w, cli.Fit(w, fmt.Sprintf("lock %q: %s", e.Name, said)))
	for i := range e.Evicted {
		printWaiter(w, &e.Evicted[i])
	}
	if more := e.EvictedCount - len(e.Evicted); more > 0 {
		fmt.Fprint(w, cli.Indented("", fmt.Sprintf("and %d more", more)))
	}
	if len(e.Evicted) > 0 && !e.partial {
		e.Next.print(w)
	}
}
