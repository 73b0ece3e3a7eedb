package show

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

type lister struct {
	choice
	from   *connect.Server
	format cli.Output

	out      io.Writer
	errors   io.Writer
	unread   int // keys that the last scan could not read
	suspects inspect.Suspects
	circles  []inspect.Circle    // certain ones among the suspects
	away     error               // why the last scan could not reach a master
	hint     func(string) string // adds the context to commands
}

// NewList returns the command list.
func NewList(g *cli.Globals) *cobra.Command {
	l := &lister{hint: g.Hint}
	cmd := &cobra.Command{
		Use:     "list [PATTERN]",
		Short:   "List all clients' locks on the server",
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
			if l.from, err = g.Server(cmd.Context()); err != nil {
				return err
			}
			if _, err := cli.WarnOfReplica(cmd.Context(), l.from, l.errors); err != nil {
				return err
			}
			return cli.UntilSignal(cmd.Context(), l.list)
		},
	}
	f := cmd.Flags()
	l.format.RegisterTable(cmd, "; JSON has one lock per line")
	f.StringVar(&l.kind, "kind", "", "only locks of this kind: "+inspect.KindNames())
	f.BoolVar(&l.stuck, "stuck", false, "only free locks with a queue")
	f.BoolVar(&l.noTTL, "no-ttl", false, "only locks held without a lease")
	f.BoolVar(&l.dead, "dead-waiters", false, "only locks with waiters that had no subscriber in two checks")
	f.BoolVar(&l.locked, "deadlocked", false, "only locks in a deadlock")
	f.StringVar(&l.sort, "sort", "", "by name, lease (first to expire first) or queue (longest first)")
	f.IntVar(&l.limit, "limit", 0, "maximum number to list, 0 for all")
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
		return cli.Usagef("--limit must not be negative")
	}
	return nil
}

func (l *lister) list(ctx context.Context) error {
	out, report := l.printer(), progress(l.errors, noteEvery)
	total := 0
	var err error
	var kept []*inspect.Lock // to be printed after the scan
	if l.collects() {
		kept, total, err = l.collect(ctx, report)
	} else {
		err = l.scan(ctx, report, func(lock *inspect.Lock) error {
			total++
			if l.marks() && lock.Contended() {
				kept = append(kept, lock)
				return nil
			}
			return out.add(lock)
		})
	}
	if l.marks() && err == nil {
		l.warn(ctx, l.findDeadlocks(ctx))
	}
	if err == nil || !l.collects() {
		err = cmp.Or(err, each(kept, out.add))
	}
	out.flush()
	switch {
	case err != nil:
		return err
	case total == 0 && l.away != nil: // the unreachable master may have some
	case total == 0 && l.format.Structured():
		l.format.NoItems(l.out)
	case total == 0 && l.unread > 0:
		l.message("no %s visible to this user%s", l.things(), l.matching())
	case total == 0:
		l.message("no %s here%s", l.things(), l.matching())
	default:
		out.end(total)
	}
	if !l.marks() {
		l.warn(ctx, l.findDeadlocks(ctx))
	}
	l.sayDeadlocks()
	if l.away != nil {
		return fmt.Errorf("the list is incomplete: %w", l.away)
	}
	return nil
}

// marks reports whether the output shows which locks are deadlocked. Otherwise the list need not wait for that.
func (l *lister) marks() bool { return l.format.Structured() || l.format.Wide() }

// findDeadlocks searches once.
func (l *lister) findDeadlocks(ctx context.Context) error {
	circles, err := l.suspects.Circles(ctx, l.from)
	l.circles, l.suspects = append(l.circles, circles...), inspect.Suspects{}
	if errors.Is(err, inspect.ErrCut) {
		l.message("warning: %v", err)
		return nil
	}
	return err
}

func (l *lister) warn(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		l.message("warning: cannot search for deadlocks: %v", err)
	}
}

func (l *lister) sayDeadlocks() {
	for _, c := range l.circles {
		l.message("deadlock: %s; `redlatch status %s` shows it", strings.Join(c.Lines(), "; "), inspect.Args(c[0].Lock))
	}
}

func (l *lister) deadlock(lock *inspect.Lock) inspect.Circle {
	for _, c := range l.circles {
		if c.Has(lock.Name) {
			return c
		}
	}
	return nil
}

func (l *lister) collect(ctx context.Context, report reporter) ([]*inspect.Lock, int, error) {
	kept := l.collection()
	if !l.dead && !l.locked {
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
	if l.dead {
		queued, err = l.withDead(ctx, queued)
	}
	if l.locked && err == nil {
		err = l.findDeadlocks(ctx)
		queued = slices.DeleteFunc(queued, func(lock *inspect.Lock) bool { return l.deadlock(lock) == nil })
	}
	if err != nil {
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
		Places:  inspect.CirclePlaces,
		Found: func(lock *inspect.Lock) error {
			l.suspects.Add(lock)
			lock.Places, lock.PlaceLabels = nil, nil
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

type reporter func(done float64, locks int)

func progress(w io.Writer, every time.Duration) reporter {
	next := time.Now().Add(every)
	return func(done float64, locks int) {
		if now := time.Now(); !now.Before(next) {
			next = now.Add(every)
			cli.Messagef(w, "%.0f%% of the keys scanned, %s", 100*done, (&tally{locks: locks}).of(locks))
		}
	}
}

func (l *lister) message(format string, args ...any) {
	cli.Messagef(l.errors, "%s", l.hint(fmt.Sprintf(format, args...)))
}

const listHelp = `Lists the locks of Redlatch and Redisson whose names match PATTERN, or all
locks. It includes free locks with a queue, and semaphores with permits in use
that have IDs. PATTERN has Redis syntax: * matches anything, ? one character,
[ab] one of these. Quote it to keep the shell from expanding it.

  KIND    plain, fair if its queue is not empty (with an empty queue, a fair
          lock looks like a plain lock), or r/w for a read/write lock
  HOLDER  the label of the client; without one, the kind of client, the end of
          its UUID, and the number of its thread or acquisition; the command
          status shows the full owner
  COUNT   the hold count
  LEASE   when the lock expires if it is not renewed
  QUEUE   number of queued owners
  mixed   some clients wait for this name as another kind of lock

For a semaphore (sem), HOLDER shows the numbers of used and available permits,
LEASE the remaining lifetime of its number, and QUEUE the number of waiting
connections. Other semaphores and count-down latches (latch) are plain numbers,
such as other programs use; they are listed only with --kind semaphore, latch
or counter (count). A semaphore without used permits and waiters is a counter.

The command scans all keys, 250 at a time, with short commands so that the
server can serve other clients in between. Locks acquired or released during
the scan may be missing. Up to 100,000 locks are sorted by name. Beyond that,
the output is in sorted pages of that size unless --sort is given. -o json (one
lock per line) and -o yaml print locks in scan order, and last those that could
be deadlocked, unless --sort, --limit or --dead-waiters is given.

-o wide prints one line per lock, with full owners and labels; with
--no-headers, the lines can be split at blanks. -o name prints only names, one
word per line: blanks, quotes, backslashes, *, ?, [, control characters and a
leading hyphen are written in octal as \0NNN, which printf %b decodes.

Names that are not valid UTF-8 are also shown in base64. status, watch, evict
and unlock accept them with --base64.

Deadlocks among the locks that match PATTERN are reported on standard error
after the list, and mark their locks in -o json, yaml and wide. --deadlocked
lists only these. If there may be a deadlock, that takes a few seconds.

--stuck lists free locks with queued owners. --dead-waiters lists locks with
waiters that had no subscriber in two checks one second apart, among the first
10,000; redlatch evict --all-dead removes such waiters.

Exit codes:
  0      the locks were listed, or none matched
  1      the command failed; if one master of a cluster failed, the locks of
         the other masters are listed
  2      the command line or the address is invalid
  128+n  signal n ended the command: 130 SIGINT (Ctrl-C), 143 SIGTERM`

const listExamples = `  redlatch list
  redlatch list 'orders:*'
  redlatch list --kind fair
  redlatch list --sort queue --limit 10      # the longest queues
  redlatch list --kind counter 'pool:*'      # also idle semaphores
  redlatch list --stuck                      # free, with a queue
  redlatch list -o wide --no-headers | awk '$2 == "fair" { print $1, $3 }'
  redlatch list --json | jq -r 'select(.queue_length > 10) | .name'`
