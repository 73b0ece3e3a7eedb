package show

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

type lister struct {
	choice
	from *connect.Server
	json bool

	out    io.Writer
	errors io.Writer
	unread int   // keys that the last scan could not read
	away   error // why the last scan missed a master
}

// NewList returns the command list.
func NewList(g *cli.Globals) *cobra.Command {
	l := &lister{}
	cmd := &cobra.Command{
		Use:     "list [PATTERN]",
		Short:   "List the locks on the server, of all clients",
		Long:    listHelp,
		Example: listExamples,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l.out, l.errors = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if len(args) > 0 {
				l.pattern = args[0]
			}
			if err := l.check(); err != nil {
				return err
			}
			var err error
			if l.from, err = g.Server(); err != nil {
				return err
			}
			if _, err := cli.WarnOfReplica(cmd.Context(), l.from, l.errors); err != nil {
				return err
			}
			return cli.UntilSignal(cmd.Context(), l.list)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&l.json, "json", false, "print JSON, one lock a line, as they are found")
	f.StringVar(&l.kind, "kind", "", "only locks of this kind: "+inspect.KindNames())
	f.BoolVar(&l.stuck, "stuck", false, "only locks that are free with a queue")
	f.BoolVar(&l.noTTL, "no-ttl", false, "only locks that are held without a lease")
	f.BoolVar(&l.dead, "dead-waiters", false, "only locks with waiters that have no subscriber, seen twice")
	f.StringVar(&l.sort, "sort", "", "by name, by lease (the first to end first) or by queue (the longest first)")
	f.IntVar(&l.limit, "limit", 0, "list so many at most, 0 for all")
	cli.CompleteValues(cmd, "kind", inspect.Kinds()...)
	cli.CompleteValues(cmd, "sort", byName, byLease, byQueue)
	return cmd
}

func (l *lister) check() error {
	switch {
	case l.kind != "" && !slices.Contains(inspect.Kinds(), l.kind):
		return cli.Usagef("--kind must be %s", inspect.KindNames())
	case l.sort != "" && orders[l.sort] == nil:
		return cli.Usagef("--sort must be name, lease or queue")
	case l.limit < 0:
		return cli.Usagef("--limit must be how many to list, or 0 for all")
	}
	return nil
}

func (l *lister) list(ctx context.Context) error {
	out, report := l.printer(), progress(l.errors, noteEvery)
	total := 0
	var err error
	if l.collects() {
		var kept []*inspect.Lock
		if kept, total, err = l.collect(ctx, report); err == nil {
			err = each(kept, out.add)
		}
	} else {
		err = l.scan(ctx, report, func(lock *inspect.Lock) error {
			total++
			return out.add(lock)
		})
	}
	out.flush()
	switch {
	case err != nil:
		return err
	case total == 0 && l.away != nil: // there may be others
	case total == 0 && l.json:
	case total == 0 && l.unread > 0:
		l.message("no %s that this user may see%s", l.things(), l.matching())
	case total == 0:
		l.message("no %s here%s", l.things(), l.matching())
	default:
		out.end(total)
	}
	if l.away != nil {
		return fmt.Errorf("the list is not complete: %w", l.away)
	}
	return nil
}

// collect returns the locks to list, in order, and how many match.
func (l *lister) collect(ctx context.Context, report reporter) ([]*inspect.Lock, int, error) {
	kept := l.collection()
	if !l.dead {
		err := l.scan(ctx, report, kept.add)
		return kept.first(), kept.total, err
	}
	var queued []*inspect.Lock
	err := l.scan(ctx, report, func(lock *inspect.Lock) error {
		queued = append(queued, lock)
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	if queued, err = l.withDead(ctx, queued); err != nil {
		return nil, 0, err
	}
	err = each(queued, kept.add)
	return kept.first(), kept.total, err
}

func each(locks []*inspect.Lock, do func(*inspect.Lock) error) error {
	for _, lock := range locks {
		if err := do(lock); err != nil {
			return err
		}
	}
	return nil
}

func (l *lister) scan(ctx context.Context, report reporter, found func(*inspect.Lock) error) error {
	n := 0
	unread, err := inspect.RunOnMasters(ctx, l.from, inspect.Request{
		Pattern: l.pattern,
		Permits: l.permits(),
		Numbers: inspect.Kind(l.kind).IsNumber(),
		Found: func(lock *inspect.Lock) error {
			if !l.wants(lock) {
				return nil
			}
			n++
			return found(lock)
		},
		Progress: func(done float64) { report(done, n) },
	})
	if err != nil {
		return err
	}
	if l.unread = unread.Keys; l.unread > 0 {
		l.message("%s", unread.Text("keys"))
	}
	l.away = unread.Away
	return nil
}

const noteEvery = 5 * time.Second

// reporter receives the scanned part of the keys, from 0 to 1, and the number of locks found.
type reporter func(done float64, locks int)

func progress(w io.Writer, every time.Duration) reporter {
	next := time.Now().Add(every)
	return func(done float64, locks int) {
		if now := time.Now(); !now.Before(next) {
			next = now.Add(every)
			cli.Messagef(w, "%.0f%% of the keys looked at, %s", 100*done, (&tally{locks: locks}).of(locks))
		}
	}
}

func (l *lister) message(format string, args ...any) {
	cli.Messagef(l.errors, format, args...)
}

const listHelp = `Lists the locks whose names match PATTERN, all without one: those of Redlatch
and of Redisson, held or free with a queue, and the semaphores of which permits
with ids are taken. PATTERN is one of Redis's: * for anything, ? for one
character, [ab] for one of these. Quote it, or the shell takes it for files.

  KIND    plain, or fair if its queue is not empty (a fair lock with an empty
          queue looks like a plain one), or r/w for a read/write lock
  HOLDER  the kind of client, the end of its UUID, and the number of its thread
          or acquisition; redlatch status shows it in full
  COUNT   how often the holder has entered
  LEASE   how long the server keeps the lock if it is not renewed
  QUEUE   how many are queued
  mixed   some wait for this name as for another kind of lock than is held

Of a semaphore (sem) HOLDER says how many permits are taken and available,
LEASE is how long its number lives, and QUEUE how many connections wait. Other
semaphores and count-down latches (latch) are numbers, as other programs have
them, and listed only with --kind semaphore, latch or counter (count).

All keys are scanned, 250 at a time and with short commands: the server serves
other clients in between. Locks that are taken or released meanwhile may be
missing. Up to 100,000 locks are sorted by name; more come in sorted pages of
as many, unless --sort is given. --json prints them as they are found, unless
--sort, --limit or --dead-waiters is given.

A name that is no UTF-8 is shown in base64, too: status, watch, evict and
unlock take it with --base64.

--stuck lists what is free although owners are queued. --dead-waiters lists
locks with waiters that had no subscriber at two looks, a second apart, among
the first 10,000; redlatch evict --all-dead takes such waiters out.

Exit codes:
  0      the locks were listed, though there be none
  1      something failed; if that is one master of a cluster, the locks of
         the others are listed
  2      the command line or the address is wrong
  128+n  signal n ended it: 130 SIGINT (Ctrl-C), 143 SIGTERM`

const listExamples = `  redlatch list
  redlatch list 'orders:*'
  redlatch list --kind fair
  redlatch list --sort queue --limit 10      # the longest queues
  redlatch list --kind semaphore 'pool:*'    # also with no permit taken
  redlatch list --stuck                      # free, with a queue
  redlatch list --json | jq -r 'select(.queue_length > 10) | .name'`
