package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/cluster"
	"github.com/redlatch/redlatch/internal/failover"
	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/internal/redisurl"
	"github.com/redlatch/redlatch/transport"
)

// IsCluster reports whether the address belongs to a cluster.
func (s *Server) IsCluster() bool { return s.at.Kind == redisurl.Cluster }

// IsDeployment reports whether the address belongs to a cluster or to Sentinels.
func (s *Server) IsDeployment() bool { return s.at.Several() }

// Place returns host:port, the path of a unix socket, or the String of a deployment.
func (s *Server) Place() string {
	switch s.at.Kind {
	case redisurl.Single:
		return s.at.Hosts[0]
	case redisurl.Socket:
		return s.at.Path
	}
	return s.String()
}

// Masters returns the servers with locks: s itself, the Sentinels' master, or the cluster's
// masters.
func (s *Server) Masters(ctx context.Context) ([]*Server, error) {
	all, err := s.masters(ctx)
	if err != nil {
		return nil, s.Problem(err)
	}
	return all, nil
}

func (s *Server) masters(ctx context.Context) (all []*Server, err error) {
	var addrs []string
	switch {
	case s.IsCluster():
		addrs, err = s.nodes(ctx)
	case s.IsDeployment():
		addrs, err = s.master(ctx)
	default:
		return []*Server{s}, nil
	}
	for _, addr := range addrs {
		all = append(all, s.member(addr))
	}
	return all, err
}

// Node is a server with locks: a master of a cluster, or a server that is not a replica.
type Node struct {
	Name    string
	Dial    Dialer
	Problem func(error) error
	// User and Name are "" if unknown.
	User string
}

// Nodes returns Masters as Nodes.
func (s *Server) Nodes(ctx context.Context) (all []Node, err error) {
	masters, err := s.Masters(ctx)
	for _, m := range masters {
		all = append(all, Node{m.Place(), m.Dial, m.Problem, m.User()})
	}
	return all, err
}

func (s *Server) member(addr string) *Server {
	one := s.node(addr)
	one.of = s
	return one
}

func (s *Server) master(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	watches := &Server{tls: s.tls, at: &redisurl.Address{
		Kind: redisurl.Sentinels, Secure: s.at.Secure, User: s.at.SentinelUser, Password: s.at.SentinelPassword,
	}}
	addr, err := failover.NewSentinels(s.at.Master, s.at.Hosts, func(ctx context.Context, addr string) (redis.Conn, error) {
		return watches.node(addr).dial(ctx)
	}).Master(ctx)
	if err != nil {
		return nil, err
	}
	return []string{addr}, nil
}

// nodes queries the nodes of a cluster until one replies.
func (s *Server) nodes(ctx context.Context) (masters []string, first error) {
	for _, addr := range s.at.Hosts {
		err := Use(ctx, s.node(addr).dial, func(c redis.Conn) error {
			reply, err := c.Do("CLUSTER", "SLOTS")
			if err == nil {
				masters, err = cluster.Masters(reply, addr)
			}
			if err == nil && len(masters) == 0 {
				err = fmt.Errorf("the node at %s reports no master that serves slots", addr)
			}
			return err
		})
		if err == nil {
			return masters, nil
		}
		first = cmp.Or(first, err)
	}
	return nil, first
}

// node returns another server of the deployment or replication group, over TCP.
func (s *Server) node(addr string) *Server { return &Server{at: s.at.Node(addr), tls: s.tls} }

func (s *Server) dialDeployment(ctx context.Context) (redis.Conn, error) {
	if s.IsCluster() {
		return s.route(ctx)
	}
	addrs, err := s.master(ctx)
	if err != nil {
		return nil, err
	}
	c, err := s.node(addrs[0]).dial(ctx)
	return c, redisconn.AtNode(addrs[0], err)
}

// routed is a connection to a cluster. It sends a command to the master of its first argument if
// that is a key, and follows redirections.
type routed struct {
	nodes Caller
	sent  []*mux.Pending // replies not received yet, oldest first
	err   error          // the last connection error
}

var _ redis.Conn = (*routed)(nil)

// Caller starts calls. It is a transport.Transport or a master of a cluster.
type Caller interface {
	mux.Starter
	Close() error
}

// Over returns a connection that sends commands through t, and that closes t when it is closed. It
// cannot subscribe. Except for Close, only one goroutine may use it at a time. Only t limits the
// wait for a reply.
func Over(t Caller) redis.Conn { return &routed{nodes: t} }

func (s *Server) route(ctx context.Context) (redis.Conn, error) {
	nodes := cluster.New(cluster.Config{
		Seeds:   s.at.Hosts,
		Dial:    func(ctx context.Context, addr string) (redis.Conn, error) { return s.node(addr).dial(ctx) },
		Publish: "PUBLISH",
		Conn:    redisconn.Config{Command: timeout, DialTimeout: timeout},
	})
	if err := mux.Ping(ctx, nodes); err != nil {
		_ = nodes.Close()
		return nil, err
	}
	return &routed{nodes: nodes}, nil
}

var keyless = map[string]bool{
	"ACL": true, "CLIENT": true, "CLUSTER": true, "CONFIG": true, "EVAL": true, "EVALSHA": true,
	"INFO": true, "PING": true, "PUBSUB": true, "ROLE": true, "SCAN": true, "TIME": true, "WAIT": true,
}

func (r *routed) start(command string, args []any) *mux.Pending {
	call := &transport.Call{Command: command, Args: args}
	if len(args) > 0 && !keyless[command] {
		call.NumKeys = 1
	}
	return mux.Begin(r.nodes, call)
}

func (r *routed) await(p *mux.Pending) (any, error) {
	reply, err := p.Wait(context.Background())
	var refusal *transport.ServerError
	var node *redisconn.NodeError
	switch {
	case errors.As(err, &node) && !errors.As(err, &refusal): // other nodes may work
		return nil, err
	case errors.As(err, &refusal):
		return nil, redis.Error(refusal.Text)
	case err != nil:
		r.err = err
	}
	return reply, err
}

func (r *routed) Do(command string, args ...any) (any, error) {
	return r.await(r.start(command, args))
}

func (r *routed) Send(command string, args ...any) error {
	r.sent = append(r.sent, r.start(command, args))
	return nil
}

func (*routed) Flush() error { return nil }

func (r *routed) Receive() (any, error) {
	if len(r.sent) == 0 {
		return nil, errors.New("no subscription to receive from")
	}
	came := r.sent[0]
	r.sent = r.sent[1:]
	return r.await(came)
}

func (r *routed) Err() error { return r.err }

func (r *routed) Close() error { return r.nodes.Close() }

// Listening counts the connections subscribed to each channel. c must come from Dial or Over. In a
// cluster, sharded subscriptions and replicas are included.
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
