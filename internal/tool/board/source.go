package board

import (
	"context"
	"errors"
	"sync"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/cluster"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/diagnosis"
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/listing"
	"github.com/redlatch/redlatch/transport"
)

// ErrCluster says that the locks of a cluster cannot be listed through a client.
var ErrCluster = errors.New("redlatchui: the locks of a cluster cannot be listed through an adapter, " +
	"which has no way to each master: use a client of redlatch.Open, or the command redlatch ui")

// Source is where the locks are. It is safe for concurrent use.
type Source struct {
	// Place names the server, without user and password; empty when it is not known.
	Place string

	client  *redlatch.Client
	dial    func(context.Context) (redis.Conn, error)
	scan    func(context.Context, listing.Request) (listing.Unread, error)
	look    func(context.Context) ([]diagnosis.Finding, error)
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
		look: func(ctx context.Context) ([]diagnosis.Finding, error) { return diagnosis.LookAt(ctx, srv, client) },
	}, nil
}

// FromClient returns a source that asks on the connections of client, which must be open for as
// long as the source is used. Names are keys on the server, whatever name mapper the client
// has. The error is ErrCluster for the client of a cluster that has no way to each master.
func FromClient(client *redlatch.Client) (*Source, error) {
	t := borrowed{engine.EngineOf(client).Transport}
	places := func(context.Context) ([]diagnosis.Place, error) {
		return []diagnosis.Place{{Conn: connect.Over(t)}}, nil
	}
	_, isCluster := t.Transport.(transport.Slotter)
	if isCluster {
		nodes, has := t.Transport.(*cluster.Cluster)
		if !has {
			return nil, ErrCluster
		}
		places = mastersOf(nodes)
	}
	own, err := redlatch.NewWithTransport(t.whole(), redlatch.WithServerTime())
	if err != nil {
		return nil, err
	}
	problem := func(err error) error { return err }
	return &Source{
		client: own, problem: problem,
		dial: func(context.Context) (redis.Conn, error) { return connect.Over(t), nil },
		scan: func(ctx context.Context, r listing.Request) (listing.Unread, error) {
			at, err := places(ctx)
			if err != nil {
				return listing.Unread{}, err
			}
			r.Labels = connect.Over(t) // the label of a client may be on another node than its lock
			return runOn(ctx, at, r)
		},
		look: func(ctx context.Context) ([]diagnosis.Finding, error) {
			at, err := places(ctx)
			if err != nil {
				return nil, err
			}
			return diagnosis.Look(ctx, diagnosis.Looking{Client: own, Places: at, Cluster: isCluster, Problem: problem})
		},
	}, nil
}

// mastersOf returns what finds the masters of a cluster.
func mastersOf(nodes *cluster.Cluster) func(context.Context) ([]diagnosis.Place, error) {
	return func(ctx context.Context) (all []diagnosis.Place, err error) {
		masters, err := nodes.Masters(ctx)
		for _, m := range masters {
			all = append(all, diagnosis.Place{Name: m.Addr(), Conn: connect.Over(m)})
		}
		return all, err
	}
}

// runOn finds the locks at each of the places.
func runOn(ctx context.Context, places []diagnosis.Place, r listing.Request) (unread listing.Unread, err error) {
	for _, at := range places {
		r.Conn = at.Conn
		some, err := listing.Run(ctx, r)
		if unread.Keys += some.Keys; some.Why != nil {
			unread.Why = some.Why
		}
		if err != nil {
			return unread, err
		}
	}
	return unread, nil
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

// whole returns it with what the transport of a cluster can do, too.
func (b borrowed) whole() transport.Transport {
	if slots, is := b.Transport.(transport.Slotter); is {
		return struct {
			borrowed
			transport.Slotter
		}{b, slots}
	}
	return b
}

// Listeners counts as the transport does.
func (b borrowed) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	counter, can := b.Transport.(transport.Counter)
	if !can {
		return nil, errors.New("this transport cannot count subscribers")
	}
	return counter.Listeners(ctx, channels...)
}
