// Package status is the command redlatch status: it shows the holder of a lock and its
// queue.
//
//	question.ask ─▶ watch: once, again ─▶ complete: the rest of the queue ─▶ readDetails ─▶ print
package status

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// aMoment is for how long a free lock with a queue is looked at before that is
// called anything but a lock on its way from one to the next.
const aMoment = time.Second

// codeFree is the exit code for a lock that is free, as that of redlatch unlock.
const codeFree = 3

// shownWaiters is how many of a queue are shown, unless the user says.
const shownWaiters = 20

// New returns the command.
func New(g *cli.Globals) *cobra.Command {
	var asJSON bool
	q := question{}
	var names cli.Names
	cmd := &cobra.Command{
		Use:     "status NAME",
		Short:   "Show the holder and the queue of a lock",
		Long:    statusHelp,
		Example: statusExamples,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case q.look <= 0:
				return cli.Usagef("--for must be more than 0s")
			case q.show < 0:
				return cli.Usagef("--waiters must be how many to show, or 0 for all")
			case q.from < 1:
				return cli.Usagef("--from must be a place in the queue, 1 for the next one")
			}
			q.show = min(q.show, inspect.LookedAt)
			args, err := names.Read(args...)
			if err != nil {
				return err
			}
			q.name, q.lease, q.errors = args[0], cmd.Flags().Changed("for"), cmd.ErrOrStderr()
			return q.answer(cmd, g, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	names.Register(cmd, "NAME is")
	cmd.Flags().BoolVar(&q.exitCode, "exit-code", false, "exit with 3 when the lock is free")
	cmd.Flags().IntVar(&q.show, "waiters", shownWaiters, "how many of the queue to show, at most 10000; 0 for all up to that")
	cmd.Flags().IntVar(&q.from, "from", 1, "the first place of the queue to show")
	cmd.Flags().DurationVar(&q.look, "for", aMoment, "how long to look, at most, whether the lease is renewed, "+
		"or a lock taken that is free and has a queue")
	return cmd
}

// question is what is asked about a lock.
type question struct {
	name string
	// look is how long to look, at most.
	look time.Duration
	// lease is true when a lock that is held is looked at, too, until its lease is
	// renewed.
	lease bool
	// show is how many of the queue to show, 0 for all, from the place from on.
	show, from int
	// exitCode makes a lock that is free a failure.
	exitCode bool
	// errors gets messages.
	errors io.Writer
}

// shown is what the command shows: a lock, or the number of a semaphore or a latch.
type shown interface{ print(w io.Writer) }

// answer asks, and prints what is there.
func (q *question) answer(cmd *cobra.Command, g *cli.Globals, asJSON bool) error {
	var s shown
	lock, err := q.ask(cmd.Context(), g)
	if s = lock; err != nil {
		s, err = showCounter(cmd.Context(), g, q.name, err)
	}
	var other *inspect.NotLock
	if asJSON && errors.As(err, &other) {
		_ = cli.PrintJSON(cmd, other) // the error says it, too
	}
	switch {
	case err != nil:
		return err
	case asJSON:
		err = cli.PrintJSON(cmd, s)
	default:
		s.print(cmd.OutOrStdout())
	}
	switch {
	case err != nil || !q.exitCode:
		return err
	case lock == nil:
		return cli.Errorf(1, "%q is no lock: whether it is held cannot be said", q.name)
	case !lock.Held:
		return &cli.ExitError{Code: codeFree}
	}
	return nil
}

// ask reads the lock and the first of its queue at one moment, and again for as long as
// there may be more to see, then the rest of the queue, and what else the server has about
// the lock.
func (q *question) ask(ctx context.Context, g *cli.Globals) (s *status, err error) {
	err = cli.WithServer(ctx, g, q.name, func(srv *connect.Server, client *redlatch.Client) error {
		if err := inspect.CheckIsLock(ctx, srv, q.name); err != nil {
			return err
		}
		master, err := srv.Master(ctx)
		switch {
		case err != nil:
			return err
		case master != "":
			cli.Messagef(q.errors, "warning: %s", srv.OfReplica(master))
		}
		if s, err = q.watch(ctx, client); err == nil {
			s.ReplicaOf = master
			s.readDetails(ctx, srv)
		}
		return err
	})
	return s, err
}
