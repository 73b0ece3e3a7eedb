package board

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/cluster"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/diagnosis"
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
	"github.com/redlatch/redlatch/transport"
)

var (
	// ErrCluster says that the locks of a cluster cannot be listed through a client.
	ErrCluster = errors.New("redlatchui: the locks of a cluster cannot be listed through an adapter, " +
		"which has no way to each master: use a client of redlatch.Open, or the command redlatch ui")
	errNoClient = fmt.Errorf("%w: the client of the page is nil", redlatch.ErrInvalid)
)

// Source is where the locks are. It is safe for concurrent use.
type Source struct {
	// Place names the server, without user and password; empty when it is not known.
	Place string
	// Problem returns an error of the server's as it is shown.
	Problem func(error) error

	client *redlatch.Client
	close  func() error
	dial   connect.Dialer
	scan   func(context.Context, inspect.Request) (inspect.Unread, error)
	look   func(context.Context) ([]diagnosis.Finding, error)
	// master fails when nothing can be written.
	master func(context.Context) error
	// cluster is whether it is one.
	cluster bool
	// listens is whether dial makes connections that can listen.
	listens bool
}

// FromClient returns a source that asks on the connections of client, which must be open for as
// long as the source is used. Names are keys on the server, whatever name mapper the client
// has. For a client that connect.Server.Open has made, the source connects to that server as well,
// and is all that it asks. The error is ErrCluster for the client of a cluster that has no way to
// each master.
func FromClient(client *redlatch.Client) (*Source, error) {
	if client == nil {
		return nil, errNoClient
	}
	if srv := connect.OpenedBy(client); srv != nil {
		return fromServer(srv, client), nil
	}
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
		places = func(ctx context.Context) (all []diagnosis.Place, err error) {
			masters, err := nodes.Masters(ctx)
			for _, m := range masters {
				all = append(all, diagnosis.Place{Name: m.Addr(), Conn: connect.Over(m)})
			}
			return all, err
		}
	}
	own, err := redlatch.NewWithTransport(t.whole(), redlatch.WithServerTime())
	if err != nil {
		return nil, err
	}
	return &Source{
		client: own, close: own.Close, Problem: connect.Explain, cluster: isCluster,
		dial:   func(context.Context) (redis.Conn, error) { return connect.Over(t), nil },
		master: func(context.Context) error { return nil },
		scan: func(ctx context.Context, r inspect.Request) (inspect.Unread, error) {
			at, err := places(ctx)
			if err != nil {
				return inspect.Unread{}, err
			}
			r.Labels = connect.Over(t) // the label of a client may be on another node than its lock
			return runOn(ctx, at, r)
		},
		look: func(ctx context.Context) ([]diagnosis.Finding, error) {
			at, err := places(ctx)
			if err != nil {
				return nil, err
			}
			return diagnosis.Look(ctx, diagnosis.Looking{Client: own, Places: at, Cluster: isCluster, Problem: connect.Explain})
		},
	}, nil
}

// fromServer returns the source for a client that srv has opened.
func fromServer(srv *connect.Server, client *redlatch.Client) *Source {
	return &Source{
		Place: srv.String(), client: client, close: func() error { return nil },
		dial: srv.Dial, Problem: srv.Problem, master: srv.NeedMaster, listens: !srv.IsCluster(), cluster: srv.IsCluster(),
		scan: func(ctx context.Context, r inspect.Request) (inspect.Unread, error) {
			return inspect.RunOnMasters(ctx, srv, r)
		},
		look: func(ctx context.Context) ([]diagnosis.Finding, error) { return diagnosis.LookAt(ctx, srv, client) },
	}
}

// runOn finds the locks at each of the places. If some fail and others do not, Unread reports that.
func runOn(ctx context.Context, places []diagnosis.Place, r inspect.Request) (unread inspect.Unread, err error) {
	away := 0
	for _, at := range places {
		r.Conn = at.Conn
		some, err := inspect.Run(ctx, r)
		if err != nil {
			some.Away = connect.Explain(err)
			away++
		}
		unread.Add(some)
	}
	if away == len(places) {
		return unread, unread.Away
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
	subscriber, err := follow.SubscribePatterns(ctx, s.dial, name, false)
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

// Close ends the connections that the source has made.
func (s *Source) Close() error { return s.close() }

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
