package evict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
	"github.com/redlatch/redlatch/rfairlock"
)

// allDead evicts all dead waiters of a lock.
type allDead struct {
	on     bool
	look   time.Duration
	atOnce int // how many places are looked at, and cleared, together
}

// allEvicted is its output.
type allEvicted struct {
	inspect.Named
	// Evicted are the waiters that were evicted, the first in the queue first: the first
	// inspect.LookedAt of EvictedCount.
	Evicted      []place `json:"evicted"`
	EvictedCount int     `json:"evicted_count"`
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
		return a.failed(name, done, err)
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

// failed returns the error of an eviction of which a part may be done.
func (a *allDead) failed(name string, done *allEvicted, err error) error {
	if errors.Is(err, admin.ErrNotCounted) {
		err = cli.Errorf(1, "lock %q: which waiters are dead is unknown: %s", name, inspect.NotCounted(err))
	}
	if err != nil && done != nil && done.EvictedCount > 0 {
		return fmt.Errorf("after %d waiters of lock %q were evicted: %w", done.EvictedCount, name, err)
	}
	return err
}

// evict evicts the waiters without a subscriber, the last one first, so that the first that is left
// is woken. With an error it returns what was done before.
func (a *allDead) evict(ctx context.Context, client *redlatch.Client, name string) (*allEvicted, error) {
	in, err := admin.InspectPart(ctx, rfairlock.New(client, name), 1, 1)
	if err != nil {
		return nil, err
	}
	out, woken := &allEvicted{Named: inspect.NameOf(name), Evicted: []place{}}, ""
	for last := in.Waiting; last > 0; last -= a.atOnce {
		at := inspect.Part{Name: name, First: max(1, last-a.atOnce+1), Last: last}
		first, err := a.evictAt(ctx, client, at, out)
		if err != nil {
			return out, err
		}
		woken = cmp.Or(first, woken) // parts in front may have no dead waiter
	}
	return out, out.readNext(ctx, client, woken)
}

// evictAt looks twice for waiters without a subscriber at some places, and evicts them. It returns the
// owner that was woken.
func (a *allDead) evictAt(ctx context.Context, client *redlatch.Client, at inspect.Part, out *allEvicted) (woken string, err error) {
	dead, err := at.Absent(ctx, client, nil)
	if err == nil && len(dead) > 0 {
		if err = inspect.Pause(ctx, a.look); err == nil {
			dead, err = at.Absent(ctx, client, dead)
		}
	}
	if err != nil {
		return "", err
	}
	evicted, woken, err := repair.EvictAll(ctx, client, at, dead)
	out.add(evicted)
	return woken, err
}

// add adds waiters that were in front of those that it has.
func (e *allEvicted) add(evicted []admin.Waiter) {
	e.EvictedCount += len(evicted)
	places := []place{}
	for i := range evicted[:min(len(evicted), inspect.LookedAt)] {
		places = append(places, placeOf(&evicted[i], time.Now()))
	}
	e.Evicted = append(places, e.Evicted[:min(len(e.Evicted), inspect.LookedAt-len(places))]...)
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
	said := fmt.Sprintf("%d waiters were evicted from the queue", e.EvictedCount)
	switch e.EvictedCount {
	case 0:
		said = "no waiter was evicted: each has a subscriber"
	case 1:
		said = "a waiter was evicted from the queue"
	}
	if len(e.Evicted) == 0 && e.QueueLength == 0 {
		said = "no waiter was evicted: the queue is empty"
	}
	fmt.Fprintln(w, cli.Fit(w, fmt.Sprintf("lock %q: %s", e.Name, said)))
	for i := range e.Evicted {
		e.Evicted[i].print(w)
	}
	if more := e.EvictedCount - len(e.Evicted); more > 0 {
		fmt.Fprint(w, cli.Indented("", fmt.Sprintf("and %d more", more)))
	}
	if len(e.Evicted) > 0 {
		e.Next.print(w)
	}
}
