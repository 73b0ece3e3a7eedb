package servers

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

const (
	ioTimeout = 10 * time.Second
	slots     = 16384
)

// Server is a single server or a node of a cluster. It is safe for concurrent use.
type Server struct {
	// Addr has the form host:port.
	Addr string
	// User is the name with which Do authenticates, or "" for the default user.
	User string
	// Version is the name and version of the server, such as "valkey 8.1.1".
	Version string

	pool *redis.Pool
}

func connect(tb testing.TB, addr, user string) *Server {
	tb.Helper()
	s := &Server{Addr: addr, User: user}
	s.pool = &redis.Pool{MaxIdle: 2, Dial: func() (redis.Conn, error) {
		return redis.Dial("tcp", addr, redis.DialUsername(user), redis.DialPassword(user),
			redis.DialConnectTimeout(ioTimeout), redis.DialReadTimeout(ioTimeout), redis.DialWriteTimeout(ioTimeout))
	}}
	tb.Cleanup(func() { _ = s.pool.Close() })
	info, err := redis.String(s.Do(tb, "INFO", "server"), nil)
	if err != nil {
		tb.Fatalf("servers: %s: INFO: %v", addr, err)
	}
	s.Version = version(info)
	return s
}

// version returns the name and version of a server. It ignores the Redis version with which a fork is compatible.
func version(info string) string {
	fields := map[string]string{"server_name": "redis"}
	for line := range strings.Lines(info) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[key] = value
		}
	}
	name := fields["server_name"]
	return name + " " + fields[name+"_version"]
}

// Do runs one command and returns the reply as redigo represents it.
func (s *Server) Do(tb testing.TB, cmd string, args ...any) any {
	tb.Helper()
	c := s.pool.Get()
	defer func() { _ = c.Close() }()
	reply, err := c.Do(cmd, args...)
	if err != nil {
		tb.Fatalf("servers: %s: %s %v: %v", s.Addr, cmd, args, err)
	}
	return reply
}

// As creates a user with all rights, whose password is its name, and returns the server for this user. Forbid then does
// not affect other users.
func (s *Server) As(tb testing.TB, user string) *Server {
	tb.Helper()
	s.Do(tb, "ACL", "SETUSER", user, "on", ">"+user, "~*", "&*", "+@all")
	tb.Cleanup(func() { s.Do(tb, "ACL", "DELUSER", user) })
	return connect(tb, s.Addr, user)
}

// Forbid revokes the right to run a command from the server's User.
func (s *Server) Forbid(tb testing.TB, cmd string) {
	tb.Helper()
	s.Do(tb, "ACL", "SETUSER", s.User, "-"+cmd)
}

// Cluster is a running cluster whose slots are not moved.
type Cluster struct {
	Nodes, Masters []*Server
	Sharded        bool

	owners [slots]*Server
}

func survey(tb testing.TB, addrs []string) (*Cluster, error) {
	tb.Helper()
	c := &Cluster{}
	for _, addr := range addrs {
		c.Nodes = append(c.Nodes, connect(tb, addr, ""))
	}
	c.Sharded = knows(tb, c.Nodes[0], "SPUBLISH")
	for _, node := range c.Nodes {
		ranges, err := redis.Values(node.Do(tb, "CLUSTER", "SLOTS"), nil)
		for _, r := range ranges {
			err = errors.Join(err, c.learn(tb, r))
		}
		if err != nil {
			return nil, fmt.Errorf("%s: CLUSTER SLOTS: %w", node.Addr, err)
		}
	}
	if slot := slices.Index(c.owners[:], nil); slot >= 0 {
		return nil, fmt.Errorf("no node serves slot %d", slot)
	}
	return c, nil
}

func knows(tb testing.TB, s *Server, command string) bool {
	tb.Helper()
	known, _ := redis.Values(s.Do(tb, "COMMAND", "INFO", command), nil)
	return len(known) == 1 && known[0] != nil
}

func (c *Cluster) learn(tb testing.TB, slotRange any) error {
	tb.Helper()
	var first, last int
	parts, err := redis.Values(slotRange, nil)
	if err == nil {
		parts, err = redis.Scan(parts, &first, &last)
	}
	if err != nil {
		return fmt.Errorf("%v: %w", slotRange, err)
	}
	for i, part := range parts {
		var host, id string
		var port int
		fields, err := redis.Values(part, nil)
		if err == nil {
			_, err = redis.Scan(fields, &host, &port, &id)
		}
		if err != nil {
			return fmt.Errorf("%v: %w", part, err)
		}
		addr := net.JoinHostPort(host, strconv.Itoa(port))
		at := slices.IndexFunc(c.Nodes, func(s *Server) bool { return s.Addr == addr })
		if at < 0 {
			return fmt.Errorf("node redirects clients to %s: want one of %v", addr, c.Addrs())
		}
		there := c.Nodes[at]
		if known := fmt.Sprintf("%s", there.Do(tb, "CLUSTER", "MYID")); known != id {
			return fmt.Errorf("node redirects clients of %s to %s, which is the address of %s", id, addr, known)
		}
		if i > 0 {
			continue
		}
		if !slices.Contains(c.Masters, there) {
			c.Masters = append(c.Masters, there)
		}
		for slot := first; slot <= last; slot++ {
			c.owners[slot] = there
		}
	}
	return nil
}

// Addrs returns the addresses of the nodes in the form host:port.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, s := range c.Nodes {
		addrs[i] = s.Addr
	}
	return addrs
}

// Do runs one command on the master that serves key.
func (c *Cluster) Do(tb testing.TB, key, cmd string, args ...any) any {
	tb.Helper()
	return c.owners[transport.HashSlot(key)].Do(tb, cmd, args...)
}

// String describes the nodes.
func (c *Cluster) String() string {
	return fmt.Sprintf("%d nodes of %s, %d of them masters", len(c.Nodes), c.Nodes[0].Version, len(c.Masters))
}
