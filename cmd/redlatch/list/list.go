// Package list is the command redlatch list: it lists the locks on a server as they are
// found, or draws them again and again.
package list

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

// lister lists locks.
type lister struct {
	choice
	from  *connect.Server
	json  bool
	watch bool
	every time.Duration

	out    io.Writer
	errors io.Writer
	unread int   // keys that the last look could not look into
	away   error // why the last look has not looked at all masters
}

// New returns the command.
func New(g *cli.Globals) *cobra.Command {
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
			if err := l.check(cmd.Flags().Changed("every")); err != nil {
				return err
			}
			var err error
			if l.from, err = g.Server(); err != nil {
				return err
			}
			master, err := l.from.Master(cmd.Context())
			switch {
			case err != nil:
				return err
			case master != "":
				l.message("warning: %s", l.from.OfReplica(master))
			}
			do := func(ctx context.Context) error { return l.once(ctx, newBar(l.errors)) }
			if l.watch {
				do = l.repeat
			}
			return cli.UntilSignal(cmd.Context(), nil, do)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&l.json, "json", false, "print JSON, one lock a line, as they are found")
	f.StringVar(&l.kind, "kind", "", "only locks of this kind: "+listing.KindNames())
	f.BoolVar(&l.watch, "watch", false, "look again and again, until interrupted")
	f.DurationVar(&l.every, "every", 2*time.Second, "with --watch, the least time between two looks")
	f.BoolVar(&l.stuck, "stuck", false, "only locks that are free with a queue")
	f.BoolVar(&l.noTTL, "no-ttl", false, "only locks that are held without a lease")
	f.BoolVar(&l.dead, "dead-waiters", false, "only locks with waiters that have no subscriber, seen twice")
	f.StringVar(&l.sort, "sort", "", "by name, by lease (the first to end first) or by queue (the longest first)")
	f.IntVar(&l.limit, "limit", 0, "list so many at most, 0 for all")
	cli.CompleteValues(cmd, "kind", listing.Kinds()...)
	cli.CompleteValues(cmd, "sort", byName, byLease, byQueue)
	return cmd
}

// check says what is wrong with the flags. everyGiven is whether --every was.
func (l *lister) check(everyGiven bool) error {
	switch {
	case everyGiven && !l.watch:
		return cli.Usagef("--every is how often --watch looks: without --watch there is one look")
	case l.kind != "" && !slices.Contains(listing.Kinds(), l.kind):
		return cli.Usagef("--kind must be %s", listing.KindNames())
	case l.sort != "" && orders[l.sort] == nil:
		return cli.Usagef("--sort must be name, lease or queue")
	case l.limit < 0:
		return cli.Usagef("--limit must be how many to list, or 0 for all")
	case l.every < 100*time.Millisecond:
		return cli.Usagef("--every must be at least 100ms")
	case l.watch && l.json:
		return cli.Usagef("--watch prints text only; `redlatch watch --json` prints changes as JSON")
	}
	return nil
}

// once lists the locks, and shows the progress in the bar. Output goes through the bar,
// because both may be on one terminal, also through other programs.
func (l *lister) once(ctx context.Context, bar *bar) error {
	defer bar.clear()
	out := l.printer(bar)
	total := 0
	list := func(lock *listing.Lock) error {
		total++
		return out.add(lock)
	}
	var err error
	if l.collects() {
		var kept []*listing.Lock
		if kept, total, err = l.collect(ctx, bar); err == nil {
			err = each(kept, out.add)
		}
	} else {
		err = l.scan(ctx, bar, list)
	}
	out.flush()
	bar.clear()
	switch {
	case err != nil:
		return err
	case total == 0 && l.away != nil: // whether there are others is not known
	case total == 0 && l.json: // no line says it
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

// collect finds the locks, and returns those to be listed, in order, and how many there are.
func (l *lister) collect(ctx context.Context, bar *bar) ([]*listing.Lock, int, error) {
	kept := l.collection()
	if !l.dead {
		err := l.scan(ctx, bar, kept.add)
		return kept.first(), kept.total, err
	}
	var queued []*listing.Lock
	err := l.scan(ctx, bar, func(lock *listing.Lock) error {
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

// each does something with all locks, until an error.
func each(locks []*listing.Lock, do func(*listing.Lock) error) error {
	for _, lock := range locks {
		if err := do(lock); err != nil {
			return err
		}
	}
	return nil
}

// scan looks at all masters once.
func (l *lister) scan(ctx context.Context, bar *bar, found func(*listing.Lock) error) error {
	n := 0
	unread, err := listing.RunOnMasters(ctx, l.from, listing.Request{
		Pattern: l.pattern,
		Permits: l.permits(),
		Numbers: listing.Kind(l.kind).IsNumber(),
		Found: func(lock *listing.Lock) error {
			if !l.wants(lock) {
				return nil
			}
			n++
			return found(lock)
		},
		Progress: func(done float64) { bar.show(done, n) },
	})
	if err != nil {
		return err
	}
	if l.unread = unread.Keys; l.unread > 0 {
		bar.clear()
		l.message("%s", unread.Text("keys"))
	}
	l.away = unread.Away
	return nil
}
