package connect

import (
	"context"
	"errors"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/cluster"
	"github.com/redlatch/redlatch/internal/redisconn/config"
	"github.com/redlatch/redlatch/internal/roundtrip"
	"github.com/redlatch/redlatch/transport"
)

// routed is a connection to a cluster: each command goes to the master that serves its
// first argument, if that is a key, or where a node says. It cannot listen. As other
// connections it is for one goroutine, but Close may come from another.
type routed struct {
	nodes Caller
	sent  []*roundtrip.Pending // whose replies were not received, the oldest first
	err   error                // why there was no reply to the last command that had none
}

var _ redis.Conn = (*routed)(nil)

// Caller is where calls can be started: a transport.Transport, or one master of a cluster.
type Caller interface {
	roundtrip.Starter
	// Close ends it.
	Close() error
}

// Over returns a connection whose commands go through t, which is closed with it. It cannot
// listen, and is for one goroutine, but Close may come from another. Each reply ends by t's own
// bounds.
func Over(t Caller) redis.Conn { return &routed{nodes: t} }

// route returns a connection to the cluster, which has answered.
func (s *Server) route(ctx context.Context) (redis.Conn, error) {
	nodes, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	return &routed{nodes: nodes}, nil
}

// Cluster connects to the cluster that s is, to listen to channels of it. Its errors are
// those of Problem.
func (s *Server) Cluster(ctx context.Context) (transport.Transport, error) {
	nodes, err := s.connect(ctx)
	if err != nil {
		return nil, s.Problem(err)
	}
	return nodes, nil
}

// connect returns the cluster, which has answered.
func (s *Server) connect(ctx context.Context) (*cluster.Cluster, error) {
	nodes := cluster.New(cluster.Config{
		Seeds:   s.at.Hosts,
		Dial:    func(ctx context.Context, addr string) (redis.Conn, error) { return s.node(addr).dial(ctx) },
		Publish: "PUBLISH",
		Conn:    config.Config{Command: timeout, DialTimeout: timeout},
	})
	if err := roundtrip.Ping(ctx, nodes); err != nil {
		_ = nodes.Close() // nothing was done with it
		return nil, err
	}
	return nodes, nil
}

// keyless are commands whose first argument is no key.
var keyless = map[string]bool{
	"ACL": true, "CLIENT": true, "CLUSTER": true, "CONFIG": true, "EVAL": true, "EVALSHA": true,
	"INFO": true, "PING": true, "PUBSUB": true, "ROLE": true, "SCAN": true, "TIME": true, "WAIT": true,
}

func (r *routed) start(command string, args []any) *roundtrip.Pending {
	call := &transport.Call{Command: command, Args: args}
	if len(args) > 0 && !keyless[command] {
		call.NumKeys = 1
	}
	return roundtrip.Start(r.nodes, call)
}

// await waits for what comes of a command. Each ends: within a bound of the cluster's.
func (r *routed) await(p *roundtrip.Pending) (any, error) {
	reply, err := p.Wait(context.Background())
	var refusal *transport.ServerError
	var node *config.NodeError
	switch {
	case errors.As(err, &node) && !errors.As(err, &refusal): // other nodes answer
		return nil, err
	case errors.As(err, &refusal):
		return nil, redis.Error(refusal.Text)
	case err != nil:
		r.err = err
	}
	return reply, err
}

// Do is part of redis.Conn.
func (r *routed) Do(command string, args ...any) (any, error) {
	return r.await(r.start(command, args))
}

// Send is part of redis.Conn.
func (r *routed) Send(command string, args ...any) error {
	r.sent = append(r.sent, r.start(command, args))
	return nil
}

// Flush is part of redis.Conn.
func (*routed) Flush() error { return nil }

// Receive is part of redis.Conn.
func (r *routed) Receive() (any, error) {
	if len(r.sent) == 0 {
		return nil, errors.New("there is nothing to receive")
	}
	came := r.sent[0]
	r.sent = r.sent[1:]
	return r.await(came)
}

// Err is part of redis.Conn.
func (r *routed) Err() error { return r.err }

// Close is part of redis.Conn.
func (r *routed) Close() error { return r.nodes.Close() }

// Listening returns how many connections listen to each of channels, by asking on c, which
// Dial has made: in a cluster either way, and on replicas, too. It sends one PUBSUB to a
// server.
func Listening(ctx context.Context, c redis.Conn, channels ...string) ([]int64, error) {
	if r, is := c.(*routed); is {
		counter, can := r.nodes.(transport.Counter)
		if !can {
			return nil, errors.New("this transport cannot count subscribers")
		}
		return counter.Listeners(ctx, channels...)
	}
	reply, err := redis.Values(c.Do("PUBSUB", redis.Args{"NUMSUB"}.AddFlat(channels)...))
	if err != nil {
		return nil, err
	}
	if len(reply) != 2*len(channels) {
		return nil, fmt.Errorf("%w to PUBSUB NUMSUB about %d channels: %d parts", transport.ErrBadReply, len(channels), len(reply))
	}
	counts := make([]int64, len(channels))
	for i := range counts {
		if counts[i], err = redis.Int64(reply[2*i+1], nil); err != nil {
			return nil, err
		}
	}
	return counts, nil
}
