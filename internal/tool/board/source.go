package board

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/internal/tool/repair"
	"github.com/redlatch/redlatch/transport"
)

var (
	// ErrCluster says that the locks of a cluster cannot be listed through a client.
	ErrCluster = errors.New("redlatchui: locks of a cluster cannot be listed through a client, " +
		"since a client has no command for each master: use the command redlatch ui")
	errNoClient = fmt.Errorf("%w: the client of the page is nil", redlatch.ErrInvalid)
)

// Source is where the locks are. It is safe for concurrent use.
type Source struct {
	// Place names the server, without user and password; empty when it is not known.
	Place string

	client  *redlatch.Client
	close   func() error
	dial    repair.Dial
	scan    func(context.Context, listing.Request) (listing.Unread, error)
	problem func(error) error
	// master fails when nothing can be written.
	master func(context.Context) error
	// listens is whether dial makes connections that can listen.
	listens bool
}

// FromClient returns a source that asks on the connections of client, which must be open for as
// long as the source is used. Names are keys on the server, whatever name mapper the client
// has. For a client that connect.Server.Open has made, the source connects to that server as well,
// which may be a cluster, and is all that it asks; for any other client of a cluster the error is
// ErrCluster.
func FromClient(client *redlatch.Client) (*Source, error) {
	if client == nil {
		return nil, errNoClient
	}
	if srv := connect.OpenedBy(client); srv != nil {
		return fromServer(srv, client), nil
	}
	t := borrowed{engine.EngineOf(client).Transport}
	if _, cluster := t.Transport.(transport.Slotter); cluster {
		return nil, ErrCluster
	}
	own, err := redlatch.NewWithTransport(t, redlatch.WithServerTime())
	if err != nil {
		return nil, err
	}
	return &Source{
		client: own, close: own.Close,
		dial:    func(context.Context) (redis.Conn, error) { return connect.Over(t), nil },
		problem: func(err error) error { return err },
		master:  func(context.Context) error { return nil },
		scan: func(ctx context.Context, r listing.Request) (listing.Unread, error) {
			r.Conn = connect.Over(t)
			return listing.Run(ctx, r)
		},
	}, nil
}

// fromServer returns the source for a client that srv has opened.
func fromServer(srv *connect.Server, client *redlatch.Client) *Source {
	return &Source{
		Place: srv.String(), client: client, close: func() error { return nil },
		dial: srv.Dial, problem: srv.Problem, master: srv.NeedMaster, listens: !srv.IsCluster(),
		scan: func(ctx context.Context, r listing.Request) (listing.Unread, error) {
			return listing.RunOnMasters(ctx, srv, r)
		},
	}
}

// listen returns the messages of a lock, and what waits for the end of the listening after ctx.
// It listens with patterns: clients of the lock count the subscribers of its channel, and must
// not count those that only look. Where patterns cannot be listened to, as in a cluster, there
// are no messages, and looks alone show what has happened.
func (s *Source) listen(ctx context.Context, name string) (messages <-chan follow.Message, done func()) {
	if !s.listens {
		return nil, func() {}
	}
	pattern := name
	if listing.IsPattern(name) {
		pattern = listing.Literal(name)
	}
	channel := codec.LockChannel(name)
	subscriber, err := follow.SubscribePatterns(ctx, s.dial, pattern, func(other string) bool { return codec.LockChannel(other) == channel })
	if err != nil {
		return nil, func() {}
	}
	var running sync.WaitGroup
	running.Go(func() { subscriber.Run(ctx) })
	return subscriber.Messages, running.Wait
}

// Target returns where locks are repaired. The error says that nothing can be written there.
func (s *Source) Target(ctx context.Context) (repair.Target, error) {
	if err := s.master(ctx); err != nil {
		return repair.Target{}, err
	}
	return repair.Target{Client: s.client, Dial: s.dial}, nil
}

// Problem returns err as it is shown.
func (s *Source) Problem(err error) error { return s.problem(err) }

// Close ends the connections that the source has made.
func (s *Source) Close() error { return s.close() }

// borrowed is a transport that its owner closes.
type borrowed struct{ transport.Transport }

// Close leaves the transport open.
func (borrowed) Close() error { return nil }

// Listeners counts as the transport does.
func (b borrowed) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	counter, can := b.Transport.(transport.Counter)
	if !can {
		return nil, errors.New("this transport cannot count subscribers")
	}
	return counter.Listeners(ctx, channels...)
}
