// Package list is the command redlatch list: it lists the locks on a server as they are
// found, or draws them again and again.
package list

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/internal/tool/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/internal/tool/output"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
)

// lister lists locks.
type lister struct {
	from    *connect.Server
	pattern string
	kind    string
	json    bool
	watch   bool
	every   time.Duration

	out    io.Writer
	errors io.Writer
	unread int // hashes that the last look could not look into
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
			if master := l.from.Master(cmd.Context()); master != "" {
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
	cli.CompleteValues(cmd, "kind", listing.Kinds()...)
	return cmd
}

// check says what is wrong with the flags. everyGiven is whether --every was.
func (l *lister) check(everyGiven bool) error {
	switch {
	case everyGiven && !l.watch:
		return cli.Errorf(1, "--every is how often --watch looks: without --watch there is one look")
	case l.kind != "" && !slices.Contains(listing.Kinds(), l.kind):
		return cli.Errorf(1, "--kind must be %s", listing.KindNames())
	case l.every < 100*time.Millisecond:
		return cli.Errorf(1, "--every must be at least 100ms")
	case l.watch && l.json:
		return cli.Errorf(1, "--watch prints text only; `redlatch watch --json` prints changes as JSON")
	}
	return nil
}

// once lists the locks, and shows the progress in the bar. Output goes through the bar,
// because both may be on one terminal, also through other programs.
func (l *lister) once(ctx context.Context, bar *bar) error {
	defer bar.clear()
	if l.json {
		enc := json.NewEncoder(l.out)
		return l.scan(ctx, bar, func(lock *listing.Lock) error {
			bar.clear()
			return enc.Encode(listedOf(lock))
		})
	}
	t := &table{out: l.out, look: lookOf(l.out), flushing: bar.clear}
	err := l.scan(ctx, bar, func(lock *listing.Lock) error {
		t.add(rowOf(lock))
		return nil
	})
	t.flush()
	bar.clear()
	switch {
	case err != nil || t.printed > 0:
	case l.unread > 0:
		l.message("no locks that this user may see%s", l.matching())
	default:
		l.message("no locks here%s", l.matching())
	}
	return err
}

// scan looks at all masters once.
func (l *lister) scan(ctx context.Context, bar *bar, found func(*listing.Lock) error) error {
	n := 0
	unread, err := listing.RunOnMasters(ctx, l.from, listing.Request{
		Pattern: l.pattern,
		Found: func(lock *listing.Lock) error {
			if l.kind != "" && string(lock.Kind) != l.kind {
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
		l.message("%d hashes were not looked into: this user may not read them (%v)", unread.Keys, unread.Why)
	}
	return nil
}

// matching says which locks were looked for.
func (l *lister) matching() string {
	said := ""
	if l.kind != "" {
		said = " of kind " + l.kind
	}
	if l.pattern != "" {
		said += " that match " + sanitize.Word(l.pattern)
	}
	return said
}

// lookOf says what may be written to w.
func lookOf(w io.Writer) output.Look {
	if f, is := w.(*os.File); is {
		return output.LookOf(f)
	}
	return output.Look{}
}

// isLive reports whether w is a terminal.
func isLive(w io.Writer) bool {
	f, is := w.(*os.File)
	return is && output.IsLive(f)
}
