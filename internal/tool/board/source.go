package board

import (
	"context"
	"errors"
	"sync"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/transport"
)

// ErrCluster says that the locks of a cluster cannot be listed through a client.
var ErrCluster = errors.New("redlatchui: locks of a cluster cannot be listed through a client, " +
	"since a client has no command for each master: use the command redlatch ui")

// Source is where the locks are. It is safe for concurrent use.
type Source struct {
	// Place names the server, without user and password; empty when it is not known.
	Place string

	client  *redlatch.Client
	dial    func(context.Context) (redis.Conn, error)
	scan    func(context.Context, listing.Request) (listing.Unread, error)
	problem func(error) error
	// listens is whether dial makes connections that can listen.
	listens bool
}

// FromServer returns a source that connects to a server, which may be a cluster. It fails when
// the server does not answer. Its errors are those of connect.Server.Problem.
func FromServer(ctx context.Context, srv *connect.Server) (*Source, error) {
	client, err := srv.Open(ctx, redlatch.WithServerTime())
	if err != nil {
		return nil, err
	}
	return &Source{
		Place: srv.String(), client: client, dial: srv.Dial, problem: srv.Problem, listens: !srv.IsCluster(),
		scan: func(ctx context.Context, r listing.Request) (listing.Unread, error) {
			return listing.RunOnMasters(ctx, srv, r)
		},
	}, nil
}

// FromClient returns a source that asks on the connections of client, which must be open for as
// long as the source is used. Names are keys on the server, whatever name mapper the client
// has. The error is ErrCluster for the client of a cluster.
func FromClient(client *redlatch.Client) (*Source, error) {
	t := borrowed{engine.EngineOf(client).Transport}
	if _, cluster := t.Transport.(transport.Slotter); cluster {
		return nil, ErrCluster
	}
	own, err := redlatch.NewWithTransport(t, redlatch.WithServerTime())
	if err != nil {
		return nil, err
	}
	return &Source{
		client:  own,
		dial:    func(context.Context) (redis.Conn, error) { return connect.Over(t), nil },
		problem: func(err error) error { return err },
		scan: func(ctx context.Context, r listing.Request) (listing.Unread, error) {
			r.Conn = connect.Over(t)
			return listing.Run(ctx, r)
		},
	}, nil
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

// Close ends the connections that the source has made.
func (s *Source) Close() error { return s.client.Close() }

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
