package redistest

import (
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

const migrateKeys = 100

// Replicas returns the replicas of master that are in sync.
func (c *Cluster) Replicas(tb testing.TB, master *Server) []*Server {
	tb.Helper()
	var replicas []*Server
	for _, addr := range master.Replicas(tb) {
		replicas = append(replicas, c.Node(tb, addr))
	}
	return replicas
}

// Failover runs CLUSTER FAILOVER on a replica, and waits until it and its former master have switched roles.
func (c *Cluster) Failover(tb testing.TB, replica *Server) {
	tb.Helper()
	master, _ := replica.masterOf(tb)
	asked := time.Time{}
	c.await(tb, "the replica is the master", func() bool {
		// If a failover follows another one too closely, it fails after five seconds.
		if time.Since(asked) > 6*time.Second {
			replica.Do(tb, "CLUSTER", "FAILOVER")
			asked = time.Now()
		}
		return replica.role(tb) == "master"
	})
	c.await(tb, "the master is a replica", func() bool { return c.Node(tb, master).role(tb) == "slave" })
}

// AwaitOwner waits until all nodes that respond agree that the owner of key is a node other than former.
func (c *Cluster) AwaitOwner(tb testing.TB, key string, former *Server) *Server {
	tb.Helper()
	var owner *Server
	c.await(tb, "another node serves the key", func() bool {
		owner = c.Owner(tb, key)
		return owner != former && c.agree(key, owner)
	})
	return owner
}

// agree reports whether all nodes that respond know that owner serves key. A node that has not yet learned of an
// election replies with CLUSTERDOWN.
func (c *Cluster) agree(key string, owner *Server) bool {
	for _, s := range c.nodes {
		if !answers(s) {
			continue
		}
		_, err := s.try("EXISTS", key)
		if _, addr := redirection(err); err != nil && addr != owner.Addr() {
			return false
		}
	}
	return answers(owner)
}

// MoveSlot moves a slot and its keys while both masters serve it. If between is not nil, MoveSlot calls it after both
// masters have marked the slot and before it moves the keys.
func (c *Cluster) MoveSlot(tb testing.TB, slot int, to *Server, between func()) {
	tb.Helper()
	from := c.ownerOfSlot(tb, slot)
	if from == to {
		return
	}
	to.Do(tb, "CLUSTER", "SETSLOT", slot, "IMPORTING", from.nodeID(tb))
	from.Do(tb, "CLUSTER", "SETSLOT", slot, "MIGRATING", to.nodeID(tb))
	if between != nil {
		between()
	}
	for {
		keys, err := redis.Strings(from.Do(tb, "CLUSTER", "GETKEYSINSLOT", slot, migrateKeys), nil)
		if err != nil {
			tb.Fatalf("redistest: cluster: %v", err)
		}
		if len(keys) == 0 {
			break
		}
		args := []any{"127.0.0.1", to.port, "", 0, ioTimeout.Milliseconds(), "KEYS"}
		for _, key := range keys {
			args = append(args, key)
		}
		from.Do(tb, "MIGRATE", args...)
	}
	// The new owner is notified first, so that the slot always has an owner.
	for _, s := range append([]*Server{to, from}, c.nodes...) {
		if s.role(tb) == "master" {
			s.Do(tb, "CLUSTER", "SETSLOT", slot, "NODE", to.nodeID(tb))
		}
	}
	for _, s := range c.nodes {
		c.await(tb, "every node knows the slot's new owner", func() bool {
			addr, err := s.ownerOf(slot)
			return err == nil && addr == to.Addr()
		})
	}
}

func (c *Cluster) ownerOfSlot(tb testing.TB, slot int) *Server {
	tb.Helper()
	addr, err := c.nodes[slices.IndexFunc(c.nodes, answers)].ownerOf(slot)
	if err != nil {
		tb.Fatalf("redistest: cluster: %v", err)
	}
	return c.Node(tb, addr)
}

func answers(s *Server) bool {
	_, err := s.try("PING")
	return err == nil
}

func (s *Server) nodeID(tb testing.TB) string {
	tb.Helper()
	return s.text(tb, "CLUSTER", "MYID")
}

func (s *Server) role(tb testing.TB) string {
	tb.Helper()
	parts, err := redis.Values(s.Do(tb, "ROLE"), nil)
	if err != nil || len(parts) == 0 {
		tb.Fatalf("redistest: ROLE: %v, %v", parts, err)
	}
	name, err := redis.String(parts[0], nil)
	if err != nil {
		tb.Fatalf("redistest: ROLE: %v", err)
	}
	return name
}

func (s *Server) masterOf(tb testing.TB) (addr string, connected bool) {
	tb.Helper()
	role, err := redis.Values(s.Do(tb, "ROLE"), nil)
	if err != nil || len(role) != 5 {
		return "", false
	}
	host, _ := redis.String(role[1], nil)
	port, _ := redis.Int(role[2], nil)
	state, _ := redis.String(role[3], nil)
	return net.JoinHostPort(host, strconv.Itoa(port)), state == "connected"
}

func (s *Server) try(cmd string, args ...any) (any, error) {
	c := s.pool.Get()
	defer func() { _ = c.Close() }()
	return c.Do(cmd, args...)
}

func (s *Server) tryAsking(cmd string, args ...any) (any, error) {
	c := s.pool.Get()
	defer func() { _ = c.Close() }()
	if _, err := c.Do("ASKING"); err != nil {
		return nil, err
	}
	return c.Do(cmd, args...)
}

func awaitTrue(tb testing.TB, bound time.Duration, what string, is func() bool) {
	tb.Helper()
	for limit := time.Now().Add(bound); !is(); {
		if time.Now().After(limit) {
			tb.Fatalf("redistest: after %v it is still not so that %s", bound, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// StartReplica starts a replica of master, and waits until it receives the master's messages. The replicas of a master
// must be started sequentially.
func StartReplica(tb testing.TB, master *Server, opts ...Option) *Server {
	tb.Helper()
	// By default, a master delays the sync so that it can serve several replicas at the same time.
	master.Do(tb, "CONFIG", "SET", "repl-diskless-sync-delay", "0")
	before := len(master.Replicas(tb))
	host, port, err := net.SplitHostPort(master.Addr())
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	args := []string{"--replicaof", host + " " + port}
	if master.cfg.password != "" {
		args = append(args, "--masterauth", master.cfg.password)
	}
	replica := Start(tb, append([]Option{WithBinary(master.cfg.binary), WithArgs(args...)}, opts...)...)
	awaitTrue(tb, startTimeout, "the replica is in step", func() bool { return len(master.Replicas(tb)) > before })
	return replica
}

// Replicas returns the addresses of the server's replicas that are in sync.
func (s *Server) Replicas(tb testing.TB) []string {
	tb.Helper()
	role, err := redis.Values(s.Do(tb, "ROLE"), nil)
	if err != nil || len(role) != 3 {
		tb.Fatalf("redistest: no master: ROLE answers %v, %v", role, err)
	}
	replicas, err := redis.Values(role[2], nil)
	if err != nil {
		tb.Fatalf("redistest: ROLE: %v", err)
	}
	var addrs []string
	for _, replica := range replicas {
		at, err := redis.Strings(replica, nil)
		if err != nil || len(at) < 2 {
			tb.Fatalf("redistest: ROLE: %v, %v", replica, err)
		}
		addrs = append(addrs, net.JoinHostPort(at[0], at[1]))
	}
	return addrs
}

// Follow makes the server a replica of the server at addr, and waits until it is in sync. StartReplica must have been
// called for that master before.
func (s *Server) Follow(tb testing.TB, addr string) {
	tb.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		tb.Fatalf("redistest: %v", err)
	}
	s.Do(tb, "REPLICAOF", host, port)
	awaitTrue(tb, startTimeout, "the replica is in step with "+addr, func() bool {
		at, connected := s.masterOf(tb)
		return connected && at == addr
	})
}

// Lead promotes a replica.
func (s *Server) Lead(tb testing.TB) {
	tb.Helper()
	s.Do(tb, "REPLICAOF", "NO", "ONE")
}
