package show

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

type watcher struct {
	pattern string
	single  bool // pattern is the name of a single lock
	format  cli.Output
	emitted bool
	length  time.Duration // 0 means no limit

	srv    *connect.Server
	out    io.Writer
	errors io.Writer
	failed bool // the last inspection failed
}

// NewWatch returns the command watch.
func NewWatch(g *cli.Globals) *cobra.Command {
	w := &watcher{}
	var names cli.Names
	cmd := &cobra.Command{
		Use:     "watch NAME|PATTERN",
		Short:   "Print events of locks as they happen",
		Long:    watchHelp,
		Example: watchExamples,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if args, err = names.Read(args...); err != nil {
				return err
			}
			w.pattern, w.single = args[0], names.Base64 || !inspect.IsPattern(args[0])
			w.out, w.errors = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if w.length <= 0 && cmd.Flags().Changed("for") {
				return cli.Usagef("--for must be more than 0s")
			}
			if w.pattern == "" {
				return &cli.ExitError{Code: cli.CodeUsage, Err: limits.Name(w.pattern)}
			}
			if w.srv, err = g.Server(cmd.Context()); err != nil {
				return err
			}
			return cli.UntilSignal(cmd.Context(), w.run)
		},
	}
	f := cmd.Flags()
	names.Register(cmd, "NAME is")
	w.format.Register(cmd, ": one event per line, or a sequence of events")
	f.DurationVar(&w.length, "for", 0, "how long to watch (default: until interrupted)")
	return cmd
}

func (w *watcher) run(ctx context.Context) error {
	client, err := cli.Client(ctx, w.srv)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	if w.single {
		if err := inspect.CheckIsLock(ctx, w.srv, w.pattern); err != nil {
			return err
		}
	}
	if _, err := cli.WarnOfReplica(ctx, w.srv, w.errors); err != nil {
		return err
	}
	inner, cancel := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel()
	f := &follower{watcher: w, client: client, side: connect.Over(engine.EngineOf(client).Transport), locks: map[string]*followed{}}
	heard, err := f.hear(inner, &helpers)
	if err != nil {
		return err
	}
	if f.channels != nil {
		defer f.channels.Close()
	}
	found := make(chan discovery)
	if !w.single {
		helpers.Go(func() { w.find(inner, found) })
	}
	err = f.run(inner, heard, found)
	if !w.emitted && (err == nil || ctx.Err() != nil) {
		w.format.NoItems(w.out)
	}
	return err
}

func (f *follower) hear(ctx context.Context, helpers *sync.WaitGroup) (<-chan follow.Message, error) {
	if f.srv.IsCluster() {
		f.channels = follow.NewChannelSubscriber(engine.EngineOf(f.client).Transport)
		return f.channels.Messages, nil
	}
	subscriber, err := follow.SubscribePatterns(ctx, f.srv.Dial, f.pattern, !f.single)
	if err != nil {
		return nil, f.srv.Problem(err)
	}
	if err := subscriber.Unheard(); err != nil {
		f.message("cannot subscribe to messages of read/write locks; polling every second: %v", err)
	}
	helpers.Go(func() { subscriber.Run(ctx) })
	return subscriber.Messages, nil
}

const findEvery = 10 * time.Second

type discovery struct {
	name string
	err  error
}

// find finds locks that were acquired without a message.
func (w *watcher) find(ctx context.Context, found chan<- discovery) {
	tell := func(f discovery) {
		select {
		case found <- f:
		case <-ctx.Done():
		}
	}
	for {
		began := time.Now()
		unread, err := inspect.RunOnMasters(ctx, w.srv, inspect.Request{Pattern: w.pattern, Found: func(l *inspect.Lock) error {
			tell(discovery{name: l.Name})
			return nil
		}})
		if err = cmp.Or(err, unread.Away); err == nil && unread.Keys > 0 {
			err = errors.New(unread.Text("keys"))
		}
		if err != nil {
			tell(discovery{err: err})
		}
		if inspect.Pause(ctx, max(findEvery, inspect.PauseFactor*time.Since(began))) != nil {
			return
		}
	}
}

func (w *watcher) emit(event any, line string) {
	if w.format.Structured() {
		w.emitted = true
		_ = w.format.Item(w.out, event) // cli.Execute ends the command
		return
	}
	fmt.Fprintln(w.out, cli.Fit(w.out, line))
}

func (w *watcher) message(format string, args ...any) {
	cli.Messagef(w.errors, format, args...)
}

func (w *watcher) looked(err error) {
	if err != nil && !w.failed {
		w.message("%v", err)
	}
	if err == nil && w.failed {
		w.message("the server answers again")
	}
	w.failed = err != nil
}

const watchHelp = `Prints one line for each event of the lock NAME, or of the locks whose names
match PATTERN, until interrupted. PATTERN has the syntax of redlatch list.

  held      held when watching began
  free      free when watching began
  taken     a free lock was acquired
  passed    the owner changed
  released  the lock was released
  expired   the lease expired
  gone      the lock is free, but sent no message: it was deleted, or it was a
            fair lock released with an empty queue
  entered, left   the hold count of its holder changed, or one of several
                  holders of a read/write lock joined or left
  queued, quit    an owner joined or left the queue of a fair lock
  woken           a message notified a fair waiter; it may not acquire the lock

watch reads a lock after each message on its channels and once a second, and
may miss changes in between; --json has the number of messages since the last
read. It detects new locks that match a pattern by their messages, in a cluster
only by a scan of the keys every ten seconds. It watches at most 1,000 locks,
and the first 256 places of each queue. Numbers of write owners end in w.

Semaphores and count-down latches have no events; use redlatch status.

Exit codes:
  0      the time of --for is over
  1      the command failed
  2      the command line or the address is invalid
  128+n  signal n ended the command: 130 SIGINT (Ctrl-C), 143 SIGTERM`

const watchExamples = `  redlatch watch nightly-report
  redlatch watch 'orders:*'
  redlatch watch --json --for 1m billing-run |
    jq -c 'select(.event == "passed")'`
