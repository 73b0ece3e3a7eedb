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
	"github.com/redlatch/redlatch/internal/tool/follow"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/internal/tool/repair"
	"github.com/redlatch/redlatch/transport"
)

var (
	errCluster = fmt.Errorf("%w: an adapter cannot list the locks of a cluster, "+
		"since it cannot address each master: use a client from redlatch.Open, or the command redlatch ui", redlatch.ErrInvalid)
	errNoClient = fmt.Errorf("%w: the page's client is nil", redlatch.ErrInvalid)
)

// Source gives access to a server or a cluster. It is safe for concurrent use.
type Source struct {
	// Place is the address of the server without user and password, or "".
	Place   string
	Problem func(error) error

	client  *redlatch.Client
	server  *connect.Server // nil if the source can use only the client's connections
	cluster bool
	dial    connect.Dialer
	masters func(context.Context) ([]connect.Node, error)
}

// FromClient returns a source that uses the connections of client, which must remain open, but not its name mapper.
// It returns redlatch.ErrInvalid for a cluster client that cannot reach every master.
func FromClient(client *redlatch.Client) (*Source, error) {
	if client == nil {
		return nil, errNoClient
	}
	if srv := connect.OpenedBy(client); srv != nil {
		return &Source{
			Place: srv.String(), Problem: srv.Problem, client: client, server: srv, cluster: srv.IsCluster(), dial: srv.Dial, masters: srv.Nodes,
		}, nil
	}
	t := borrowed{engine.EngineOf(client).Transport}
	_, isCluster := t.Transport.(transport.Slotter)
	nodes, has := t.Transport.(*cluster.Cluster)
	if isCluster && !has {
		return nil, errCluster
	}
	own, err := redlatch.NewWithTransport(t.whole(), redlatch.WithServerTime())
	if err != nil {
		return nil, err
	}
	over := func(c connect.Caller) connect.Dialer {
		return func(context.Context) (redis.Conn, error) { return connect.Over(c), nil }
	}
	return &Source{
		Problem: connect.Explain, client: own, cluster: isCluster, dial: over(t),
		masters: func(ctx context.Context) (all []connect.Node, err error) {
			if !isCluster {
				return []connect.Node{{Dial: over(t), Problem: connect.Explain}}, nil
			}
			masters, err := nodes.Masters(ctx)
			for _, m := range masters {
				all = append(all, connect.Node{Name: m.Addr(), Dial: over(m), Problem: connect.Explain})
			}
			return all, err
		},
	}, nil
}

func (s *Source) scan(ctx context.Context, r inspect.Request) (unread inspect.Unread, err error) {
	masters, err := s.masters(ctx)
	if err != nil {
		return unread, err
	}
	if !s.cluster {
		return inspect.RunOn(ctx, masters, nil, r)
	}
	return inspect.RunOn(ctx, masters, s.dial, r)
}

// listen returns the messages of a lock until ctx ends. done waits for the subscription to end. listen subscribes to
// patterns, because the lock's clients count the subscribers of its channel, which must not include observers. It
// returns nil if patterns cannot be used, as in a cluster.
func (s *Source) listen(ctx context.Context, name string) (messages <-chan follow.Message, done func()) {
	if s.server == nil || s.cluster {
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

// Target returns the target for repairs, or an error if the server is a replica.
func (s *Source) Target(ctx context.Context) (repair.Target, error) {
	if s.server != nil {
		if err := s.server.NeedMaster(ctx); err != nil {
			return repair.Target{}, err
		}
	}
	return repair.Target{Client: s.client, Dial: s.dial}, nil
}

// Close closes the connections that the source has opened.
func (s *Source) Close() error {
	if s.server != nil {
		return nil
	}
	return s.client.Close()
}

type borrowed struct{ transport.Transport }

// Close leaves the transport open.
func (borrowed) Close() error { return nil }

func (b borrowed) whole() transport.Transport {
	if slots, is := b.Transport.(transport.Slotter); is {
		return struct {
			borrowed
			transport.Slotter
		}{b, slots}
	}
	return b
}

// Listeners implements transport.Counter.
func (b borrowed) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	counter, can := b.Transport.(transport.Counter)
	if !can {
		return nil, errors.New("this transport cannot count subscribers")
	}
	return counter.Listeners(ctx, channels...)
}
