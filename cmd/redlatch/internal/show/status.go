// Package show contains the commands that only read: status, list, watch and doctor.
package show

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/sanitize"
	"github.com/redlatch/redlatch/transport"
)

// aMoment is how long to watch a free lock with a queue, because it may just be changing hands.
const aMoment = time.Second

const codeFree = 3

const shownWaiters = 20

// NewStatus returns the command status.
func NewStatus(g *cli.Globals) *cobra.Command {
	q := question{}
	var names cli.Names
	cmd := &cobra.Command{
		Use:     "status NAME...",
		Short:   "Show the holder and the queue of a lock",
		Long:    statusHelp,
		Example: statusExamples,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case q.look <= 0:
				return cli.Usagef("--for must be more than 0s")
			case q.show < 0:
				return cli.Usagef("--waiters must not be negative")
			case q.from < 1:
				return cli.Usagef("--from must be a place in the queue, from 1 on")
			}
			q.show = min(q.show, inspect.LookedAt)
			args, err := names.Read(args...)
			if err != nil {
				return err
			}
			q.lease, q.errors = cmd.Flags().Changed("for"), cmd.ErrOrStderr()
			return q.answer(cmd, g, args)
		},
	}
	q.format.RegisterTable(cmd, "; several locks are an array")
	names.Register(cmd, "each NAME is")
	cmd.Flags().BoolVar(&q.exitCode, "exit-code", false, "exit with 3 if a lock is free")
	cmd.Flags().IntVar(&q.show, "waiters", shownWaiters, "number of waiters to show, up to 10000; 0 for all up to that")
	cmd.Flags().IntVar(&q.from, "from", 1, "first place in the queue to show")
	cmd.Flags().DurationVar(&q.look, "for", aMoment, "maximum time to wait for a renewal of the lease, "+
		"or for a waiter to acquire a free lock")
	return cmd
}

type question struct {
	name string
	look time.Duration
	// If lease is set, a held lock is watched until its lease is renewed.
	lease bool
	// show is the number of waiters to print, or 0 for all. from is the first place to print.
	show, from int
	exitCode   bool
	master     string // of a replica
	format     cli.Output
	errors     io.Writer
}

type shown interface {
	print(w io.Writer)
	wide() row
	// exists reports whether list would show it.
	exists() bool
}

// answer shows locks in the order of their names. A name that is not a lock does not hide the next ones.
func (q *question) answer(cmd *cobra.Command, g *cli.Globals, names []string) error {
	ctx := cmd.Context()
	srv, client, err := cli.Connect(ctx, g, names...)
	if err != nil {
		return err
	}
	defer func() { _ = engine.EngineOf(client).CloseWithin(0) }()
	if q.master, err = cli.WarnOfReplica(ctx, srv, q.errors); err != nil {
		return err
	}
	a := answers{question: q, out: cmd.OutOrStdout(), array: len(names) > 1, docs: []any{}}
	for _, name := range names {
		q.name = name
		s, err := q.ask(ctx, srv, client)
		a.results = append(a.results, result{name, s, err})
		var other *inspect.NotLock
		if err != nil && !rejected(err) && !errors.As(err, &other) { // the next names would fail, too
			break
		}
	}
	if !q.format.Names() {
		a.findDeadlocks(ctx, srv)
	}
	for _, r := range a.results {
		switch err := a.take(ctx, g, srv, r); {
		case err != nil && a.array:
			return errors.Join(err, a.end())
		case err != nil:
			return err
		}
	}
	if err := a.end(); err != nil {
		return err
	}
	return a.worst
}

// take adds a result to the output. It returns an error that ends the command.
func (a *answers) take(ctx context.Context, g *cli.Globals, srv *connect.Server, r result) error {
	a.name = r.name
	if r.err == nil {
		if lock, is := r.shown.(*status); is {
			lock.Note = g.Hint(lock.Note)
		}
		a.add(r.shown)
		if !r.exists() && strings.ContainsAny(r.name, "*?[") {
			cli.Messagef(a.errors, "%s", g.Hint("status takes names, not patterns; `redlatch list "+inspect.Args(r.name)+"` lists the locks that match the pattern"))
		}
		a.exit(g, a.question.exit(r.shown))
		return nil
	}
	err := cli.Explained(ctx, srv, r.name, r.err)
	var other *inspect.NotLock
	switch {
	case errors.As(err, &other):
		a.docs = append(a.docs, other)
	case !a.array, !rejected(r.err):
		return err
	}
	a.exit(g, err)
	return nil
}

// rejected reports whether the server replied to the request that failed.
func rejected(err error) bool {
	var refusal *transport.ServerError
	var reply redis.Error
	return errors.As(err, &refusal) || errors.As(err, &reply) || errors.Is(err, redlatch.ErrWrongType)
}

// exit returns the error that sets the exit code for a lock.
func (q *question) exit(s shown) error {
	switch lock, is := s.(*status); {
	case !q.exitCode:
	case !is:
		return cli.Errorf(cli.CodeFailed, "%q is not a lock: it is neither held nor free", q.name)
	case !lock.Held:
		return &cli.ExitError{Code: codeFree}
	}
	return nil
}

type result struct {
	name string
	shown
	err error
}

type answers struct {
	*question
	results []result
	out     io.Writer
	array   bool // there are several
	docs    []any
	rows    []row
	shown   int
	worst   error
}

func (a *answers) add(s shown) {
	switch {
	case a.format.Structured():
		a.docs = append(a.docs, s)
	case a.format.Wide():
		a.rows = append(a.rows, s.wide())
	case a.format.Names() && s.exists():
		fmt.Fprintln(a.out, cli.Name(a.name))
	case a.format.Names():
	default:
		if a.shown++; a.shown > 1 {
			fmt.Fprintln(a.out)
		}
		s.print(a.out)
	}
}

// exit keeps the worst result: a failure is worse than a free lock.
func (a *answers) exit(g *cli.Globals, err error) {
	var exit *cli.ExitError
	free := errors.As(err, &exit) && exit.Code == codeFree
	switch {
	case err == nil:
	case free && a.worst == nil, !a.array:
		a.worst = err
	case !free:
		cli.Messagef(a.errors, "%s", sanitize.Message(g.InContext(err)))
		a.worst = &cli.ExitError{Code: cli.CodeFailed}
	}
}

func (a *answers) end() error {
	switch {
	case a.format.Structured() && a.array:
		return a.format.Document(a.out, a.docs)
	case a.format.Structured():
		return a.format.Document(a.out, a.docs[0])
	case a.format.Wide() && len(a.rows) > 0:
		printWide(a.out, cli.LookOf(a.out), !a.format.NoHeaders, a.rows)
	}
	return nil
}

// ask inspects the lock repeatedly if it may change soon.
func (q *question) ask(ctx context.Context, srv *connect.Server, client *redlatch.Client) (shown, error) {
	if err := inspect.CheckIsLock(ctx, srv, q.name); err != nil {
		return nil, err
	}
	lock, err := q.watch(ctx, client)
	if errors.Is(err, redlatch.ErrWrongType) {
		if number := readCounter(ctx, srv, client, q.name); number != nil {
			return number, nil
		}
	}
	if err != nil {
		return nil, err
	}
	lock.ReplicaOf = q.master
	lock.readDetails(ctx, srv)
	if !q.format.Wide() && !q.format.Names() {
		lock.guessClient(ctx, srv, client)
	}
	return lock, nil
}

const statusHelp = `Shows the holders of the lock NAME, their hold counts, the remaining lease, and
the queue of a fair lock. An owner is the UUID of a client, a colon, and the
number of a thread in a Java process or of an acquisition in a Go process.
Redlatch clients have version 7 UUIDs, which contain their start time; Redisson
clients have version 4 UUIDs. If NAME is a hash but not a lock, the exit code
is 1, and -o json gives the reason.

Several names are shown one after another, in -o json and -o yaml as an array.
-o wide prints one line per lock, as redlatch list does; -o name prints the
names that are held or have a queue. The exit code is that of the worst lock.

Each reader of a read/write lock has its own lease. A reader whose lease has
expired no longer blocks the lock after the other readers have left. The owner
of a write lock ends in ":write".

If Redisson holds the lock and renews a lease of 30 s, "guess" is the client
whose last script ran when the lease was last set. If the holder is dead, that
is another client. There is no guess if several clients or none fit, or without
the right +client|list.

A renewal is visible only when it happens, every ten seconds by default. Until
then, the lease is shown as "fixed or renewed". --for limits how long to wait
for a renewal.

Each place in the queue has a deadline, shown in this machine's time. When the
first waiter is past its deadline, the next request for the lock removes it.
"subscribed" shows whether the waiter's channel has a subscriber. A live waiter
has one except briefly after queueing and during a reconnect. It is "unknown"
if subscribers cannot be counted on the master and its replicas.

Of a long queue, status shows the first 20 waiters, or --waiters, and counts
the subscribers among the rest, up to place 10,000. --from selects another part
of the queue. Places after the first 64 are read later in chunks; owners that
join or leave during the read may be missing.

If a lock is free but its queue is not empty, status observes it for a second,
or for --for. If it is still free, status explains the state of the first
waiter.

A number under NAME may be a semaphore or a count-down latch. status shows its
value, the number of waiting connections, and the IDs of the permits in use,
with which programs release them.

A plain lock and a fair lock of the same name are one lock. "mixed" shows
connections that wait for it as the other kind.

In a deadlock, each owner waits for a lock that the next one holds. status
finds the deadlock that the lock is part of, as described in the runbook,
docs/operations.md. If there may be one, it takes a few seconds longer. If a
thread of Redisson holds the lock, it first scans for queues: up to 10,000 of
them, 1,000,000 keys, and 4 s. It says so if that is not enough.
-o name does not search for deadlocks.

Exit codes:
  0  the locks were shown, held or free
  1  the command failed, or a NAME is not a lock
  2  the command line or the address is invalid
  3  with --exit-code: a lock is free`

const statusExamples = `  redlatch status nightly-report
  redlatch status --for 15s nightly-report   # is its lease renewed?
  redlatch status --for 40s billing-run      # is the first in the queue dead?
  redlatch status --json nightly-report | jq .held
  redlatch status --exit-code nightly-report >/dev/null && echo held
  redlatch status -o wide orders:1 orders:2
  redlatch status --from 10001 --waiters 500 billing-run
  redlatch status --json --waiters 0 billing-run |
    jq '.queue[] | select(.subscribed == "no")'`

// readDetails omits details that it cannot read.
func (s *status) readDetails(ctx context.Context, srv *connect.Server) {
	_ = connect.Use(ctx, srv.Dial, func(c redis.Conn) error {
		if err := inspect.SetLabels(c, s.Holders, s.Queue); err != nil {
			return err
		}
		s.Token, _ = inspect.Token(c, s.Name) // 0 if unknown
		s.Kind = s.Kind.WithToken(s.Token)
		if s.Kind == inspect.ReadWrite {
			inspect.ReadLeases(c, s.Name, s.Holders)
		}
		s.countOthers(ctx, c)
		return nil
	})
}

// findDeadlocks finds nothing if it cannot read all locks.
func (a *answers) findDeadlocks(ctx context.Context, srv *connect.Server) {
	var locks []*status
	var names []string
	for _, r := range a.results {
		if s, is := r.shown.(*status); is && (s.length() > 0 || s.waiting > 0) {
			locks, names = append(locks, s), append(names, s.Name)
		}
	}
	circles, err := inspect.CirclesAmong(ctx, srv, names)
	if errors.Is(err, inspect.ErrCut) {
		cli.Messagef(a.errors, "%v", err)
	}
	for _, s := range locks {
		if i := slices.IndexFunc(circles, func(c inspect.Circle) bool { return c.Has(s.Name) }); i >= 0 {
			s.Deadlock = circles[i]
		}
	}
}

func (s *status) countOthers(ctx context.Context, c redis.Conn) {
	counts, err := connect.Listening(ctx, c, codec.LockChannel(s.Name), protocol.ReadWriteChannel(s.Name))
	if err != nil {
		return
	}
	s.waiting, s.PlainWaiters, s.ReadWriteWaiters = inspect.WaitersOf(s.Kind, s.Held, s.length() > 0, [2]int64(counts))
}

func (s *status) mixed() string {
	const another = "; it is another lock, and in Redisson the two kinds do not exclude each other"
	switch {
	case s.ReadWriteWaiters > 0:
		return connections(s.ReadWriteWaiters) + " for this name as a read/write lock, but it is held as a plain lock" + another
	case s.Kind == inspect.ReadWrite:
		return connections(s.PlainWaiters) + " for this name as a plain lock, but it is held as a read/write lock" + another
	}
	return connections(s.PlainWaiters) + " for this name as a plain lock, others are queued for it as " +
		"a fair lock; both are one lock, and clients of the plain lock overtake the queue"
}

func connections(n int64) string {
	if n == 1 {
		return "1 connection waits"
	}
	return fmt.Sprintf("%d connections wait", n)
}
