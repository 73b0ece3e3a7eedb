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

	"github.com/redlatch/redlatch/internal/hashslot"
)

const (
	// ioTimeout bounds what the package itself asks of a server.
	ioTimeout = 10 * time.Second
	// slots is how many hash slots a cluster shares out.
	slots = 16384
)

// Server is one running server, or node. Its methods are safe for concurrent use.
type Server struct {
	// Addr is its TCP address, host:port.
	Addr string
	// User is the user of Do's commands: "" is the default user.
	User string
	// Version is what it calls itself, such as "valkey 8.1.1".
	Version string

	pool *redis.Pool
}

// connect makes a Server of what listens on addr, for the duration of the test.
func connect(tb testing.TB, addr, user string) *Server {
	tb.Helper()
	s := &Server{Addr: addr, User: user}
	s.pool = &redis.Pool{MaxIdle: 2, Dial: func() (redis.Conn, error) {
		return redis.Dial("tcp", addr, redis.DialUsername(user), redis.DialPassword(user),
			redis.DialConnectTimeout(ioTimeout), redis.DialReadTimeout(ioTimeout), redis.DialWriteTimeout(ioTimeout))
	}}
	tb.Cleanup(func() { _ = s.pool.Close() }) // the connections end with the server anyway
	info, err := redis.String(s.Do(tb, "INFO", "server"), nil)
	if err != nil {
		tb.Fatalf("servers: %s: INFO: %v", addr, err)
	}
	s.Version = version(info)
	return s
}

// version reads the answer to INFO server. Forks of Redis also have there which version of
// Redis they are compatible with.
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

// Do runs one command and returns its reply as redigo gives it. An error ends the test.
func (s *Server) Do(tb testing.TB, cmd string, args ...any) any {
	tb.Helper()
	c := s.pool.Get()
	defer func() { _ = c.Close() }() // back to the pool
	reply, err := c.Do(cmd, args...)
	if err != nil {
		tb.Fatalf("servers: %s: %s %v: %v", s.Addr, cmd, args, err)
	}
	return reply
}

// As makes a user of the server, with all rights, and returns the server as that user: what
// is then forbidden to it stays permitted to others. The user, whose password is the name,
// ends with the test.
func (s *Server) As(tb testing.TB, user string) *Server {
	tb.Helper()
	s.Do(tb, "ACL", "SETUSER", user, "on", ">"+user, "~*", "&*", "+@all")
	tb.Cleanup(func() { s.Do(tb, "ACL", "DELUSER", user) })
	return connect(tb, s.Addr, user)
}

// Forbid takes the right to a command from the server's User.
func (s *Server) Forbid(tb testing.TB, cmd string) {
	tb.Helper()
	s.Do(tb, "ACL", "SETUSER", s.User, "-"+cmd)
}

// Cluster is a running cluster whose slots stay where they are.
type Cluster struct {
	// Nodes are all of its nodes, Masters those that serve slots.
	Nodes, Masters []*Server
	// Sharded says that it knows sharded pub/sub.
	Sharded bool

	owners [slots]*Server
}

// survey makes a Cluster of nodes for the duration of the test. It is an error when they
// send clients to other addresses than these.
func survey(tb testing.TB, addrs []string) (*Cluster, error) {
	tb.Helper()
	c := &Cluster{}
	for _, addr := range addrs {
		c.Nodes = append(c.Nodes, connect(tb, addr, ""))
	}
	c.Sharded = knows(tb, c.Nodes[0], "SPUBLISH")
	for _, node := range c.Nodes {
		all, err := shards(node.Do(tb, "CLUSTER", "SLOTS")) // which all versions know
		if err != nil {
			return nil, fmt.Errorf("%s: CLUSTER SLOTS: %w", node.Addr, err)
		}
		for _, s := range all {
			if err := c.learn(tb, node, s); err != nil {
				return nil, err
			}
		}
	}
	if slot := slices.Index(c.owners[:], nil); slot >= 0 {
		return nil, fmt.Errorf("no node serves slot %d", slot)
	}
	return c, nil
}

// knows reports whether a server knows a command.
func knows(tb testing.TB, s *Server, command string) bool {
	tb.Helper()
	known, _ := redis.Values(s.Do(tb, "COMMAND", "INFO", command), nil)
	return len(known) == 1 && known[0] != nil
}

// shard is a range of slots and its nodes.
type shard struct {
	first, last int
	nodes       []reported // the master first
}

// reported is a node as others describe it.
type reported struct{ addr, id string }

// shards reads the answer to CLUSTER SLOTS.
func shards(reply any) (all []shard, err error) {
	ranges, err := redis.Values(reply, nil)
	for _, r := range ranges {
		var s shard
		parts, err := redis.Values(r, nil)
		if err == nil {
			parts, err = redis.Scan(parts, &s.first, &s.last)
		}
		for _, part := range parts {
			var host, id string
			var port int
			fields, e := redis.Values(part, nil)
			if e == nil {
				_, e = redis.Scan(fields, &host, &port, &id)
			}
			err = errors.Join(err, e)
			s.nodes = append(s.nodes, reported{net.JoinHostPort(host, strconv.Itoa(port)), id})
		}
		if err != nil || len(s.nodes) == 0 {
			return nil, fmt.Errorf("%v: %w", r, err)
		}
		all = append(all, s)
	}
	return all, err
}

// learn records the node that serves the slots of a shard, and checks that a redirection by
// node leads there.
func (c *Cluster) learn(tb testing.TB, node *Server, s shard) error {
	tb.Helper()
	for i, reported := range s.nodes {
		there := c.node(reported.addr)
		if there == nil {
			return fmt.Errorf("%s sends clients to %s, which is none of %v", node.Addr, reported.addr, c.Addrs())
		}
		id, err := redis.String(there.Do(tb, "CLUSTER", "MYID"), nil)
		if err != nil || id != reported.id {
			return fmt.Errorf("%s sends clients of %s to %s, where %s answers: %w", node.Addr, reported.id, reported.addr, id, err)
		}
		if i > 0 {
			continue
		}
		if !slices.Contains(c.Masters, there) {
			c.Masters = append(c.Masters, there)
		}
		for slot := s.first; slot <= s.last; slot++ {
			c.owners[slot] = there
		}
	}
	return nil
}

// node returns the node at addr, nil if there is none.
func (c *Cluster) node(addr string) *Server {
	i := slices.IndexFunc(c.Nodes, func(s *Server) bool { return s.Addr == addr })
	if i < 0 {
		return nil
	}
	return c.Nodes[i]
}

// Addrs returns the addresses of all nodes, host:port.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, s := range c.Nodes {
		addrs[i] = s.Addr
	}
	return addrs
}

// Do runs one command on the master of key. An error ends the test.
func (c *Cluster) Do(tb testing.TB, key, cmd string, args ...any) any {
	tb.Helper()
	return c.owners[hashslot.Of(key)].Do(tb, cmd, args...)
}

// String says what the cluster is made of.
func (c *Cluster) String() string {
	return fmt.Sprintf("%d nodes of %s, %d of them masters", len(c.Nodes), c.Nodes[0].Version, len(c.Masters))
}
