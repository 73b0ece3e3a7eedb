package evict

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/tool/cli"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/output"
	"github.com/redlatch/redlatch/internal/tool/repair"
)

// allDead evicts all dead waiters of a lock.
type allDead struct {
	on   bool
	look time.Duration
}

// allEvicted is its output.
type allEvicted struct {
	inspect.Named
	// Evicted are the waiters that were evicted, the first in the queue first.
	Evicted []place `json:"evicted"`
	// QueueLength is how many are queued now.
	QueueLength int `json:"queue_length"`
	// Next is the next owner in the queue, nil when it is empty.
	Next *nextInQueue `json:"next"`
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
		return cli.Usagef("--all-dead and --even-if-alive contradict each other")
	case !a.on && cmd.Flags().Changed("for"):
		return cli.Usagef("--for goes with --all-dead")
	case a.look < 0:
		return cli.Usagef("--for must not be negative")
	}
	return nil
}

func (a *allDead) run(cmd *cobra.Command, g *cli.Globals, name string, asJSON bool) error {
	var done *allEvicted
	err := onMaster(cmd.Context(), g, name, func(t repair.Target) (err error) {
		if err = t.CheckIsLock(cmd.Context(), name); err != nil {
			return notEvicted(err)
		}
		done, err = a.evict(cmd.Context(), t.Client, name)
		if errors.Is(err, admin.ErrNotCounted) {
			return cli.Errorf(1, "lock %q: which waiters are dead is unknown: %s", name, inspect.NotCounted(err))
		}
		return err
	})
	if err != nil {
		return err
	}
	if asJSON {
		return cli.PrintJSON(cmd, done)
	}
	done.print(cmd.OutOrStdout())
	return nil
}

// evict looks twice for waiters without a subscriber and evicts them, the last one first, so
// that the first that is left is woken.
func (a *allDead) evict(ctx context.Context, client *redlatch.Client, name string) (*allEvicted, error) {
	dead, err := inspect.Absent(ctx, client, name, nil)
	if err == nil && len(dead) > 0 {
		if err = inspect.Pause(ctx, a.look); err == nil {
			dead, err = inspect.Absent(ctx, client, name, dead)
		}
	}
	if err != nil {
		return nil, err
	}
	evicted, woken, err := repair.EvictAll(ctx, client, name, dead)
	if err != nil {
		return nil, err
	}
	out := &allEvicted{Named: inspect.NameOf(name), Evicted: []place{}}
	for i := range evicted {
		out.Evicted = append(out.Evicted, placeOf(&evicted[i], time.Now()))
	}
	return out, out.readNext(ctx, client, woken)
}

// readNext reads what is left of the queue. woken is the owner that was sent its wake-up last.
func (e *allEvicted) readNext(ctx context.Context, client *redlatch.Client, woken string) error {
	now, err := inspect.TakeSnapshot(ctx, client, e.Name)
	if err != nil {
		return err
	}
	e.QueueLength = now.Inspection.Waiting
	if len(now.Inspection.Queue) > 0 {
		next := now.Inspection.Queue[0].Text
		e.Next = &nextInQueue{
			Owned: inspect.OwnedBy(next), Client: inspect.ClientOf(next), Notified: next == woken, held: now.Held(), Subscribed: inspect.SubscribedUnknown,
		}
		e.Next.look(ctx, client, e.Name)
	}
	return nil
}

// print writes the text output.
func (e *allEvicted) print(w io.Writer) {
	said := fmt.Sprintf("%d waiters were evicted from the queue", len(e.Evicted))
	switch len(e.Evicted) {
	case 0:
		said = "no waiter was evicted: each has a subscriber"
	case 1:
		said = "a waiter was evicted from the queue"
	}
	if len(e.Evicted) == 0 && e.QueueLength == 0 {
		said = "no waiter was evicted: the queue is empty"
	}
	fmt.Fprintln(w, output.Fit(w, fmt.Sprintf("lock %q: %s", e.Name, said)))
	for i := range e.Evicted {
		e.Evicted[i].print(w)
	}
	if len(e.Evicted) > 0 {
		e.Next.print(w)
	}
}
