package redistest

import (
	"net"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

// migrateKeys is how many keys one MIGRATE takes.
const migrateKeys = 100

// Replicas returns the nodes that replicate master and are in step.
func (c *Cluster) Replicas(tb testing.TB, master *Server) []*Server {
	tb.Helper()
	var replicas []*Server
	for _, addr := range master.Replicas(tb) {
		replicas = append(replicas, c.Node(tb, addr))
	}
	return replicas
}

// Failover makes replica the master of its shard, with the consent of its present
// master, and returns when both know (CLUSTER FAILOVER).
func (c *Cluster) Failover(tb testing.TB, replica *Server) {
	tb.Helper()
	master, _ := replica.masterOf(tb)
	asked := time.Time{}
	c.await(tb, "the replica is the master", func() bool {
		// Masters vote once in twice the node timeout: soon after another fail-over of the
		// shard this one fails, after five seconds.
		if time.Since(asked) > 6*time.Second {
			replica.Do(tb, "CLUSTER", "FAILOVER")
			asked = time.Now()
		}
		return replica.role(tb) == "master"
	})
	c.await(tb, "the master is a replica", func() bool { return c.Node(tb, master).role(tb) == "slave" })
}

// AwaitOwner waits until all nodes that answer agree on the node that serves key, and that
// it is another than former, and returns it.
func (c *Cluster) AwaitOwner(tb testing.TB, key string, former *Server) *Server {
	tb.Helper()
	var owner *Server
	c.await(tb, "another node serves the key", func() bool {
		owner = c.Owner(tb, key)
		return owner != former && c.agree(key, owner)
	})
	return owner
}

// agree reports whether owner serves key and all others that answer redirect there. A node
// that does not yet know of a master's election answers CLUSTERDOWN.
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

// MoveSlot moves a slot with its keys to another master while both serve it, as redis-cli's
// reshard does. Between, if not nil, runs when the slot is marked on both masters and no
// key has been moved: then the old one answers ASK for keys that it has not.
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
	// The new owner first, so that there is one at every moment.
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

// nodeID returns what the cluster calls a node.
func (s *Server) nodeID(tb testing.TB) string {
	tb.Helper()
	return s.text(tb, "CLUSTER", "MYID")
}

// role returns what a server says that it is: master, slave or sentinel.
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

// masterOf returns the address of a replica's master, "" without one, and whether the replica
// is connected to it.
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

// try runs one command on a connection of the package's own.
func (s *Server) try(cmd string, args ...any) (any, error) {
	c := s.pool.Get()
	defer func() { _ = c.Close() }() // back to the pool
	return c.Do(cmd, args...)
}

// tryAsking is try for a node that is still being given the slot.
func (s *Server) tryAsking(cmd string, args ...any) (any, error) {
	c := s.pool.Get()
	defer func() { _ = c.Close() }() // back to the pool
	if _, err := c.Do("ASKING"); err != nil {
		return nil, err
	}
	return c.Do(cmd, args...)
}

// awaitTrue waits for what happens in its own time, as await does.
func awaitTrue(tb testing.TB, bound time.Duration, what string, is func() bool) {
	tb.Helper()
	for limit := time.Now().Add(bound); !is(); {
		if time.Now().After(limit) {
			tb.Fatalf("redistest: after %v it is still not so that %s", bound, what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// StartReplica starts a replica of master for this test and returns when it is in step:
// what is published on the master from then on reaches the replica's subscribers. It takes
// the options of Start, and knows the master's password. A program that is missing or does
// not come into step ends the test. A master's replicas are started one after the other.
func StartReplica(tb testing.TB, master *Server, opts ...Option) *Server {
	tb.Helper()
	// The default lets replicas wait for others before they are sent the data.
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

// Replicas returns the addresses of the replicas that are in step with a master
// (ROLE).
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

// Follow makes the server a replica of the one at addr, which may be a proxy's, and
// returns when it is in step with it. That master must have had a replica of
// StartReplica's before.
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

// Lead makes a replica a master.
func (s *Server) Lead(tb testing.TB) {
	tb.Helper()
	s.Do(tb, "REPLICAOF", "NO", "ONE")
}
