// Package watch is the command redlatch watch: it tells what happens to locks, one line
// for each event.
//
//	messages ─┐
//	searches ─┼▶ follower ─▶ look at the lock ─▶ follow.Lock ─▶ events ─▶ lines
//	time     ─┘
package watch

import (
	"cmp"
	"context"
	"io"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/spf13/cobra"

	"github.com/redlatch/redlatch/cmd/redlatch/internal/cli"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/listing"
)

// watcher tells what happens to locks.
type watcher struct {
	pattern string
	single  bool // it is a name
	json    bool
	length  time.Duration // how long to watch, 0 until interrupted

	srv    *connect.Server
	out    io.Writer
	errors io.Writer
}

// New returns the command.
func New(g *cli.Globals) *cobra.Command {
	w := &watcher{}
	var names cli.Names
	cmd := &cobra.Command{
		Use:     "watch NAME|PATTERN",
		Short:   "Tell what happens to locks, as it happens",
		Long:    watchHelp,
		Example: watchExamples,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if args, err = names.Read(args...); err != nil {
				return err
			}
			w.pattern, w.single = args[0], names.Base64 || !listing.IsPattern(args[0])
			w.out, w.errors = cmd.OutOrStdout(), cmd.ErrOrStderr()
			if w.length <= 0 && cmd.Flags().Changed("for") {
				return cli.Usagef("--for must be more than 0s")
			}
			if w.pattern == "" {
				return &cli.ExitError{Code: cli.CodeUsage, Err: limits.Name(w.pattern)}
			}
			if w.srv, err = g.Server(); err != nil {
				return err
			}
			return cli.UntilSignal(cmd.Context(), nil, w.run)
		},
	}
	f := cmd.Flags()
	names.Register(cmd, "NAME is")
	f.BoolVar(&w.json, "json", false, "print JSON, one event a line")
	f.DurationVar(&w.length, "for", 0, "how long to watch (default: until interrupted)")
	return cmd
}

// run watches until ctx ends or the time is over.
func (w *watcher) run(ctx context.Context) error {
	client, err := cli.Client(ctx, w.srv)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }() // it only asked
	var number *numberFollower
	if w.single {
		if err := inspect.CheckIsLock(ctx, w.srv, w.pattern); err != nil {
			return err
		}
		number = w.numberOf(ctx, client)
	}
	master, err := w.srv.Master(ctx)
	switch {
	case err != nil:
		return err
	case master != "":
		w.message("warning: %s", w.srv.OfReplica(master))
	}
	if w.length > 0 { // from now on: to connect takes its time
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, w.length)
		defer cancel()
	}
	if number != nil {
		return number.run(ctx)
	}
	inner, cancel := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer cancel()
	heard, posts, err := w.listen(inner, &helpers)
	if err != nil {
		return err
	}
	if posts != nil {
		defer func() { _ = posts.Close() }() // they only listened
	}
	side := &labelConn{dial: w.srv.Dial}
	defer side.close()
	found := make(chan discovery)
	if !w.single {
		helpers.Go(func() { w.find(inner, found) })
	}
	f := newFollower(w, client, side)
	f.channels = posts
	return f.run(inner, heard, found)
}

// listen subscribes to the channels of the locks: by patterns, or in a cluster channel by
// channel, which the follower asks for where there are locks.
func (w *watcher) listen(ctx context.Context, helpers *sync.WaitGroup) (<-chan follow.Message, *follow.ChannelSubscriber, error) {
	if w.srv.IsCluster() {
		t, err := w.srv.Cluster(ctx)
		if err != nil {
			return nil, nil, err
		}
		posts := follow.NewChannelSubscriber(t)
		return posts.Messages, posts, nil
	}
	subscriber, err := follow.SubscribePatterns(ctx, w.srv.Dial, w.channels(), w.matches())
	if err != nil {
		return nil, nil, w.srv.Problem(err)
	}
	if err := subscriber.Unheard(); err != nil {
		w.message("messages of read/write locks are not heard, they are looked at each second: %v", err)
	}
	helpers.Go(func() { subscriber.Run(ctx) })
	return subscriber.Messages, nil, nil
}

// channels returns the pattern of the names whose channels are listened to.
func (w *watcher) channels() string {
	if w.single {
		return listing.Literal(w.pattern)
	}
	return w.pattern
}

// matches returns what says whether a name is meant. Two names may have one channel.
func (w *watcher) matches() func(string) bool {
	if !w.single {
		return listing.Match(w.pattern)
	}
	channel := codec.LockChannel(w.pattern)
	return func(name string) bool { return codec.LockChannel(name) == channel }
}

// findEvery is the least time between two searches for locks.
const findEvery = 10 * time.Second

// discovery is a lock that was found, or why none can be.
type discovery struct {
	name string
	err  error
}

// find looks for locks that match, again and again until ctx ends: those that are
// taken without a message before are found by it.
func (w *watcher) find(ctx context.Context, found chan<- discovery) {
	tell := func(f discovery) {
		select {
		case found <- f:
		case <-ctx.Done():
		}
	}
	for {
		began := time.Now()
		if err := w.search(ctx, func(name string) { tell(discovery{name: name}) }); err != nil {
			tell(discovery{err: err})
		}
		if inspect.Pause(ctx, max(findEvery, listing.PauseFactor*time.Since(began))) != nil {
			return
		}
	}
}

// search looks for locks once.
func (w *watcher) search(ctx context.Context, tell func(name string)) error {
	unread, err := listing.RunOnMasters(ctx, w.srv, listing.Request{Pattern: w.pattern, Found: func(l *listing.Lock) error {
		tell(l.Name)
		return nil
	}})
	return cmp.Or(err, unread.Away)
}

// labelConn is a connection for labels. It is for one goroutine.
type labelConn struct {
	dial func(context.Context) (redis.Conn, error)
	conn redis.Conn
}

// labels returns the labels of those owners that have one. A connection that breaks is
// made anew the next time.
func (s *labelConn) labels(ctx context.Context, owners []string) map[string]string {
	if s.conn == nil {
		c, err := s.dial(ctx)
		if err != nil {
			return nil
		}
		s.conn = c
	}
	labels, err := listing.Labels(s.conn, owners)
	if err != nil {
		s.close()
	}
	return labels
}

func (s *labelConn) close() {
	if s.conn != nil {
		_ = s.conn.Close() // only read from
		s.conn = nil
	}
}
