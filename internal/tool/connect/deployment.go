package connect

import (
	"cmp"
	"context"
	"fmt"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/cluster"
	"github.com/redlatch/redlatch/internal/failover"
	"github.com/redlatch/redlatch/internal/redisconn/config"
	"github.com/redlatch/redlatch/internal/redisurl"
)

// IsCluster reports whether the address is that of a cluster.
func (s *Server) IsCluster() bool { return s.at.Kind == redisurl.Cluster }

// IsDeployment reports whether the address is that of a cluster or of Sentinels.
func (s *Server) IsDeployment() bool { return s.at.Several() }

// Place returns host:port of one server, the path of a unix socket, or what String does.
func (s *Server) Place() string {
	switch s.at.Kind {
	case redisurl.Single:
		return s.at.Hosts[0]
	case redisurl.Socket:
		return s.at.Path
	}
	return s.String()
}

// Masters returns the servers that have the locks: s itself, the one that the Sentinels
// name now, or the masters of a cluster. Its errors are those of Problem.
func (s *Server) Masters(ctx context.Context) ([]*Server, error) {
	all, err := s.masters(ctx)
	if err != nil {
		return nil, s.Problem(err)
	}
	return all, nil
}

func (s *Server) masters(ctx context.Context) ([]*Server, error) {
	if !s.IsDeployment() {
		return []*Server{s}, nil
	}
	find := s.nodes
	if !s.IsCluster() {
		find = s.master
	}
	addrs, err := find(ctx)
	if err != nil {
		return nil, err
	}
	var all []*Server
	for _, addr := range addrs {
		all = append(all, s.member(addr))
	}
	return all, nil
}

// member returns a master that the deployment has named.
func (s *Server) member(addr string) *Server {
	one := s.node(addr)
	one.of = s
	return one
}

// master asks the Sentinels for their master.
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

// nodes asks the nodes of a cluster, one after the other, for its masters. The error is
// that of the first node.
func (s *Server) nodes(ctx context.Context) ([]string, error) {
	var first error
	for _, addr := range s.at.Hosts {
		masters, err := s.mastersBy(ctx, addr)
		if err == nil {
			return masters, nil
		}
		first = cmp.Or(first, err)
	}
	return nil, first
}

// mastersBy asks the node at addr for the masters of its cluster.
func (s *Server) mastersBy(ctx context.Context, addr string) ([]string, error) {
	c, err := s.node(addr).dial(ctx)
	if err != nil {
		return nil, err
	}
	// The connection knows nothing of ctx: closing it ends what is under way.
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer func() {
		stop()
		_ = c.Close() // only read from
	}()
	reply, err := c.Do("CLUSTER", "SLOTS")
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	masters, err := cluster.Masters(reply, addr)
	if err == nil && len(masters) == 0 {
		err = fmt.Errorf("the node at %s knows no master that serves a slot", addr)
	}
	return masters, err
}

// node returns a server of the deployment, or a replica or master of one server, at host:port. It
// is reached as s is, over TCP.
func (s *Server) node(addr string) *Server { return &Server{at: s.at.Node(addr), tls: s.tls} }

// dialDeployment is dial for deployments.
func (s *Server) dialDeployment(ctx context.Context) (redis.Conn, error) {
	if s.IsCluster() {
		return s.route(ctx)
	}
	addrs, err := s.master(ctx)
	if err != nil {
		return nil, err
	}
	c, err := s.node(addrs[0]).dial(ctx)
	return c, config.AtNode(addrs[0], err)
}
