package connect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/cluster"
	"github.com/redlatch/redlatch/internal/failover"
	"github.com/redlatch/redlatch/internal/redisurl"
)

// errNoPassword says that the user in an address would not be sent.
var errNoPassword = errors.New("the user in --redis or REDIS_URL needs a password: in the address, in REDIS_PASSWORD, or in a file for " +
	"--password-file (any, for a user with nopass)")

// newDeployment is New for a cluster, and for a master that Sentinels name.
func newDeployment(set Settings) (*Server, error) {
	d, err := redisurl.ParseDeployment(set.Address)
	if err != nil {
		return nil, fmt.Errorf("--redis or REDIS_URL: %w", err)
	}
	if d.User, d.Password, err = set.identity(d.User, d.Password); err != nil {
		return nil, err
	}
	if d.User != "" && d.Password == "" {
		return nil, errNoPassword // another user than the one that is named would be asked
	}
	s := &Server{many: d}
	if set.TLS != (TLS{}) {
		d.Secure = true
		if s.tls, err = set.TLS.config(); err != nil {
			return nil, err
		}
	}
	s.address = d.Full()
	return s, nil
}

// IsCluster reports whether the address is that of a cluster.
func (s *Server) IsCluster() bool { return s.many != nil && s.many.Master == "" }

// IsDeployment reports whether the address is that of a cluster or of Sentinels.
func (s *Server) IsDeployment() bool { return s.many != nil }

// Place returns host:port of one server, the path of a unix socket, or what String does.
func (s *Server) Place() string {
	if u, err := url.Parse(s.address); err == nil && s.many == nil {
		return cmp.Or(u.Host, u.Path)
	}
	return s.String()
}

// Masters returns the servers that have the locks: s itself, the one that the Sentinels
// name now, or the masters of a cluster. Its errors are those of Problem.
func (s *Server) Masters(ctx context.Context) ([]*Server, error) {
	if s.many == nil {
		return []*Server{s}, nil
	}
	find := s.nodes
	if s.many.Master != "" {
		find = s.master
	}
	addrs, err := find(ctx)
	if err != nil {
		return nil, s.Problem(err)
	}
	var all []*Server
	for _, addr := range addrs {
		all = append(all, s.node(addr))
	}
	return all, nil
}

// master asks the Sentinels for their master.
func (s *Server) master(ctx context.Context) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	watches := &Server{tls: s.tls, many: &redisurl.Deployment{
		Secure: s.many.Secure, User: s.many.SentinelUser, Password: s.many.SentinelPassword,
	}}
	addr, err := failover.NewSentinels(s.many.Master, s.many.Hosts, func(ctx context.Context, addr string) (redis.Conn, error) {
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
	for _, addr := range s.many.Hosts {
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
	defer func() { _ = c.Close() }() // only read from
	reply, err := c.Do("CLUSTER", "SLOTS")
	if err != nil {
		return nil, err
	}
	masters, err := cluster.Masters(reply, addr)
	if err == nil && len(masters) == 0 {
		err = fmt.Errorf("the node at %s knows no master that serves a slot", addr)
	}
	return masters, err
}

// node returns the server of the deployment at host:port.
func (s *Server) node(addr string) *Server {
	u := &url.URL{Scheme: "redis", Host: addr}
	if s.many.Secure {
		u.Scheme = "rediss"
	}
	if s.many.DB != 0 {
		u.Path = "/" + strconv.Itoa(s.many.DB)
	}
	if s.many.Password != "" {
		u.User = url.UserPassword(s.many.User, s.many.Password)
	}
	return &Server{address: u.String(), tls: s.tls}
}

// dialDeployment is dial for deployments.
func (s *Server) dialDeployment(ctx context.Context) (redis.Conn, error) {
	if s.IsCluster() {
		return s.route(ctx)
	}
	addrs, err := s.master(ctx)
	if err != nil {
		return nil, err
	}
	return s.node(addrs[0]).dial(ctx)
}
