// Package show has the commands that only read: status, list, watch and doctor.
//
//	status:  question.ask ─▶ watch: once, again ─▶ complete: the queue ─▶ readDetails ─▶ print
//	list:    scan ─▶ choice.wants ─▶ printer, or collection ─▶ printer
//	watch:   messages, searches, time ─▶ follower ─▶ look at the lock ─▶ events ─▶ lines
//	doctor:  diagnosis.Examine ─▶ report
package show

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// aMoment is how long to watch a free lock with a queue, which may be changing hands.
const aMoment = time.Second

const codeFree = 3

const shownWaiters = 20

// NewStatus returns the command status.
func NewStatus(g *cli.Globals) *cobra.Command {
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

type question struct {
	name string
	look time.Duration
	// Also watch a held lock until its lease is renewed.
	lease bool
	// Show so many waiters, 0 for all, from the place from on.
	show, from int
	exitCode   bool
	errors     io.Writer
}

// shown is a lock, or the number of a semaphore or a latch.
type shown interface{ print(w io.Writer) }

func (q *question) answer(cmd *cobra.Command, g *cli.Globals, asJSON bool) error {
	s, err := q.ask(cmd.Context(), g)
	var other *inspect.NotLock
	if asJSON && errors.As(err, &other) {
		_ = cli.PrintJSON(cmd, other)
	}
	if err != nil {
		return err
	}
	if err := cli.Print(cmd, asJSON, s, s.print); err != nil || !q.exitCode {
		return err
	}
	switch lock, is := s.(*status); {
	case !is:
		return cli.Errorf(1, "%q is no lock: whether it is held cannot be said", q.name)
	case !lock.Held:
		return &cli.ExitError{Code: codeFree}
	}
	return nil
}

// ask reads the lock and the beginning of its queue, repeatedly while there may be more to see,
// then the rest of the queue and details; or else the number under the name.
func (q *question) ask(ctx context.Context, g *cli.Globals) (s shown, err error) {
	err = cli.WithServer(ctx, g, q.name, func(srv *connect.Server, client *redlatch.Client) error {
		if err := inspect.CheckIsLock(ctx, srv, q.name); err != nil {
			return err
		}
		master, err := cli.WarnOfReplica(ctx, srv, q.errors)
		if err != nil {
			return err
		}
		lock, err := q.watch(ctx, client)
		if errors.Is(err, redlatch.ErrWrongType) {
			if number := readCounter(ctx, srv, client, q.name); number != nil {
				s = number
				return nil
			}
		}
		if err == nil {
			lock.ReplicaOf = master
			lock.readDetails(ctx, srv)
			s = lock
		}
		return err
	})
	return s, err
}

const statusHelp = `Shows the holders of the lock NAME, how often each has entered it, what its
lease has left, and the queue of a fair lock. An owner is the UUID of a client,
a colon, and a number that is a thread of a Java process or an acquisition of a
Go process. Clients of Redlatch have UUIDs of version 7, which contain the time
of their start, Redisson's of version 4. For a hash that does not look like a
lock the exit code is 1, and --json says why.

Each reader of a read/write lock has a lease of its own: one whose lease is
over no longer blocks the lock when the other readers have left. The owner of a
write lock ends in ":write".

Whether a lease is renewed shows only when it is set anew, with the defaults
every ten seconds: until then it is "fixed or renewed". --for is how long to
look for it, at most.

A place in the queue has a deadline: from then on, once it is the first, the
next request for the lock removes it. It is shown by this machine's clock.
"subscribed" is whether the waiter's channel has a subscriber. That of a live
waiter has one, except for a moment after it was queued and while it
reconnects. It is "unknown" if subscribers cannot be counted on the master and
its replicas.

Of a long queue the first 20 are shown, or --waiters of them, and of the rest
up to place 10,000 how many are subscribed. --from shows any other part. The
places behind the first 64 are read later, in parts: owners that come or go
meanwhile may be missing.

A lock that is free although its queue is not empty is watched for a second, or
for --for. If it is still free then, a note explains what is known of the first
in the queue.

A name that holds a number may be a semaphore or a count-down latch: it shows
the number, how many connections wait, and which permits are taken, by the ids
that programs release them with.

A plain and a fair lock of one name are one lock. "mixed" reports connections
that wait for it as for the other kind.

Exit codes:
  0  the lock was shown, held or free
  1  something failed, or NAME is no lock
  2  the command line or the address is wrong
  3  with --exit-code: it is free`

const statusExamples = `  redlatch status nightly-report
  redlatch status --for 15s nightly-report   # is its lease renewed?
  redlatch status --for 40s billing-run      # is the first in the queue dead?
  redlatch status --json nightly-report | jq .held
  redlatch status --exit-code nightly-report >/dev/null && echo held
  redlatch status --from 10001 --waiters 500 billing-run
  redlatch status --json --waiters 0 billing-run |
    jq '.queue[] | select(.subscribed == "no")'`

// readDetails reads labels, the leases of readers, the token, and the connections that wait for
// another kind of lock. It omits anything that it cannot read.
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

// countOthers counts the connections that wait for another kind of lock of this name, 0 if unknown.
func (s *status) countOthers(ctx context.Context, c redis.Conn) {
	counts, err := connect.Listening(ctx, c, codec.LockChannel(s.Name), protocol.ReadWriteChannel(s.Name))
	if err != nil {
		return
	}
	_, s.PlainWaiters, s.ReadWriteWaiters = inspect.WaitersOf(s.Kind, s.Held, s.length() > 0, [2]int64(counts))
}

func (s *status) mixed() string {
	const another = "; it is another lock, and Redisson's of both kinds do not exclude each other"
	switch {
	case s.ReadWriteWaiters > 0:
		return connections(s.ReadWriteWaiters) + " for this name as for a read/write lock, and it is held as a plain one" + another
	case s.Kind == inspect.ReadWrite:
		return connections(s.PlainWaiters) + " for this name as for a plain lock, and it is held as a read/write lock" + another
	}
	return connections(s.PlainWaiters) + " for this name as for a plain lock, others are queued for it as for " +
		"a fair one: it is one lock, and a client that takes it as a plain one overtakes the queue"
}

func connections(n int64) string {
	if n == 1 {
		return "1 connection waits"
	}
	return fmt.Sprintf("%d connections wait", n)
}
