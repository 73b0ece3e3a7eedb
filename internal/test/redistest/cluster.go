package redistest

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/transport"
)

const (
	clusterSlots       = 16384
	clusterNodeTimeout = 2 * time.Second
	// A new cluster rejects commands for two seconds, and a failover takes about four.
	clusterWait = 40 * time.Second
)

// Cluster is a Redis or Valkey Cluster on loopback addresses. It is safe for concurrent use, except for methods that
// move slots or promote replicas.
type Cluster struct {
	nodes    []*Server
	busPorts []int

	mu      sync.Mutex // guards guesses
	guesses map[int]*Server
}

// StartCluster starts the given number of masters, each with the given number of replicas. It waits until every node
// serves its slots and every replica is in sync. It requires Valkey or Redis 7; for Redis 6, use WithRedis6.
func StartCluster(tb testing.TB, masters, replicas int, opts ...Option) *Cluster {
	tb.Helper()
	common := []Option{WithArgs(
		"--cluster-enabled", "yes", "--cluster-announce-ip", "127.0.0.1",
		"--cluster-node-timeout", strconv.FormatInt(clusterNodeTimeout.Milliseconds(), 10),
		"--repl-diskless-sync-delay", "0",
	)}
	c := &Cluster{guesses: map[int]*Server{}}
	for range masters * (1 + replicas) {
		// The default bus port may be in the range used for outgoing connections.
		bus, more := UnusedPort(tb), slices.Clone(common)
		if !newConfig(opts).redis6 {
			more = append(more, WithArgs("--cluster-port", strconv.Itoa(bus)))
		}
		node := Start(tb, append(more, opts...)...)
		if node.cfg.redis6 {
			bus = node.port + 10000
		}
		c.nodes, c.busPorts = append(c.nodes, node), append(c.busPorts, bus)
	}
	c.introduce(tb)
	c.shareOut(tb, masters)
	c.awaitMembers(tb)
	for i, replica := range c.nodes[masters:] {
		master := c.nodes[i%masters]
		c.await(tb, "the replica knows its master", func() bool {
			_, err := replica.try("CLUSTER", "REPLICATE", master.nodeID(tb))
			return err == nil
		})
	}
	c.awaitHealth(tb, masters, replicas)
	return c
}

// WithoutShardedPubSub makes a server behave like Redis 6, which does not have sharded pub/sub.
func WithoutShardedPubSub() Option {
	return WithArgs(
		"--rename-command", "SPUBLISH", "",
		"--rename-command", "SSUBSCRIBE", "",
		"--rename-command", "SUNSUBSCRIBE", "",
		"--user", "default", "on", "nopass", "sanitize-payload", "~*", "&*", "+@all", "-pubsub|shardnumsub", "-pubsub|shardchannels",
	)
}

// EachCluster runs body in parallel on a Redis Cluster and a Valkey Cluster. Each has three masters with one replica.
func EachCluster(t *testing.T, body func(t *testing.T, c *Cluster)) {
	t.Helper()
	t.Run("redis", func(t *testing.T) { t.Parallel(); body(t, StartCluster(t, 3, 1)) })
	t.Run("valkey", func(t *testing.T) {
		t.Parallel()
		body(t, StartCluster(t, 3, 1, WithBinary(ValkeyBinary(t))))
	})
}

func (c *Cluster) introduce(tb testing.TB) {
	tb.Helper()
	for i, s := range c.nodes {
		// Distinct epochs prevent collisions, which the nodes would have to resolve.
		s.Do(tb, "CLUSTER", "SET-CONFIG-EPOCH", i+1)
	}
	for i, s := range c.nodes {
		for j, other := range c.nodes[:i] {
			s.Do(tb, "CLUSTER", "MEET", "127.0.0.1", other.port, c.busPorts[j])
		}
	}
}

func (c *Cluster) shareOut(tb testing.TB, masters int) {
	tb.Helper()
	for i, s := range c.nodes[:masters] {
		part := []any{"ADDSLOTS"} // Redis 6 does not have ADDSLOTSRANGE
		for slot := clusterSlots * i / masters; slot < clusterSlots*(i+1)/masters; slot++ {
			part = append(part, slot)
		}
		s.Do(tb, "CLUSTER", part...)
	}
}

func (c *Cluster) awaitMembers(tb testing.TB) {
	tb.Helper()
	for _, s := range c.nodes {
		c.await(tb, "every node knows every other", func() bool {
			nodes := s.text(tb, "CLUSTER", "NODES")
			return strings.Count(nodes, "\n") == len(c.nodes) && !strings.Contains(nodes, "handshake")
		})
	}
}

func (c *Cluster) awaitHealth(tb testing.TB, masters, replicas int) {
	tb.Helper()
	for _, s := range c.nodes {
		c.await(tb, "every node serves its slots", func() bool {
			return strings.Contains(s.text(tb, "CLUSTER", "INFO"), "cluster_state:ok")
		})
	}
	for _, s := range c.nodes[:masters] {
		c.await(tb, "every master has its replicas in step", func() bool { return len(s.Replicas(tb)) == replicas })
	}
	for _, s := range c.nodes {
		c.await(tb, "every node knows of every replica", func() bool {
			return strings.Count(s.text(tb, "CLUSTER", "NODES"), "slave") == masters*replicas
		})
	}
}

func (*Cluster) await(tb testing.TB, what string, is func() bool) {
	tb.Helper()
	awaitTrue(tb, clusterWait, what, is)
}

// Nodes returns all nodes, the initial masters first.
func (c *Cluster) Nodes() []*Server { return slices.Clone(c.nodes) }

// Addrs returns the addresses of the nodes in the form host:port.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.nodes))
	for i, s := range c.nodes {
		addrs[i] = s.Addr()
	}
	return addrs
}

// Node returns the node with the address addr (host:port).
func (c *Cluster) Node(tb testing.TB, addr string) *Server {
	tb.Helper()
	for _, s := range c.nodes {
		if s.Addr() == addr {
			return s
		}
	}
	tb.Fatalf("redistest: cluster: %s is none of the nodes %v", addr, c.Addrs())
	return nil
}

// Owner returns the master that serves the slot of key according to most of the nodes that reply.
func (c *Cluster) Owner(tb testing.TB, key string) *Server {
	tb.Helper()
	votes, best := map[string]int{}, ""
	for _, s := range c.nodes {
		addr, err := s.ownerOf(transport.HashSlot(key))
		if err != nil {
			continue
		}
		if votes[addr]++; votes[addr] > votes[best] {
			best = addr
		}
	}
	return c.Node(tb, best)
}

func (s *Server) ownerOf(slot int) (string, error) {
	ranges, err := redis.Values(s.try("CLUSTER", "SLOTS"))
	if err != nil {
		return "", err
	}
	for _, r := range ranges {
		var first, last int
		var master []any
		parts, err := redis.Values(r, nil)
		if err == nil {
			_, err = redis.Scan(parts, &first, &last, &master)
		}
		if err != nil || len(master) < 2 {
			return "", fmt.Errorf("CLUSTER SLOTS: %v, %w", r, err)
		}
		if first <= slot && slot <= last {
			host, _ := redis.String(master[0], nil)
			port, err := redis.Int(master[1], nil)
			return net.JoinHostPort(host, strconv.Itoa(port)), err
		}
	}
	return "", fmt.Errorf("no node serves slot %d", slot)
}

// Do runs a command on the node that serves its first argument, and follows redirections.
func (c *Cluster) Do(tb testing.TB, cmd string, args ...any) any {
	tb.Helper()
	key := ""
	if len(args) > 0 {
		key = fmt.Sprint(args[0])
	}
	return c.DoAt(tb, key, cmd, args...)
}

// DoAt runs a command on the node that serves key, and follows redirections.
func (c *Cluster) DoAt(tb testing.TB, key, cmd string, args ...any) any {
	tb.Helper()
	var reply any
	var err error
	for limit := time.Now().Add(clusterWait); time.Now().Before(limit); time.Sleep(10 * time.Millisecond) {
		if reply, err = c.follow(tb, c.guess(tb, key), cmd, args); err == nil {
			return reply
		}
		c.mu.Lock()
		delete(c.guesses, transport.HashSlot(key))
		c.mu.Unlock()
		var refusal redis.Error
		if errors.As(err, &refusal) && !strings.HasPrefix(string(refusal), "TRYAGAIN") {
			break
		}
	}
	tb.Fatalf("redistest: cluster: %s %v: %v", cmd, args, err)
	return nil
}

func (c *Cluster) guess(tb testing.TB, key string) *Server {
	tb.Helper()
	slot := transport.HashSlot(key)
	c.mu.Lock()
	s := c.guesses[slot]
	c.mu.Unlock()
	if s != nil {
		return s
	}
	s = c.Owner(tb, key)
	c.mu.Lock()
	c.guesses[slot] = s
	c.mu.Unlock()
	return s
}

func (c *Cluster) follow(tb testing.TB, node *Server, cmd string, args []any) (any, error) {
	tb.Helper()
	reply, err := node.try(cmd, args...)
	for range 5 {
		word, addr := redirection(err)
		switch word {
		case "MOVED":
			reply, err = c.Node(tb, addr).try(cmd, args...)
		case "ASK":
			reply, err = c.Node(tb, addr).tryAsking(cmd, args...)
		default:
			return reply, err
		}
	}
	return reply, err
}

func redirection(err error) (word, addr string) {
	var refusal redis.Error
	if !errors.As(err, &refusal) {
		return "", ""
	}
	parts := strings.Fields(string(refusal))
	if len(parts) != 3 || parts[0] != "MOVED" && parts[0] != "ASK" {
		return "", ""
	}
	return parts[0], parts[2]
}

// Each calls f for every node that responds.
func (c *Cluster) Each(f func(s *Server)) {
	for _, s := range c.nodes {
		if answers(s) {
			f(s)
		}
	}
}
