package redistest

import (
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
)

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
	for limit := time.Now().Add(startTimeout); len(master.Replicas(tb)) == before; {
		if time.Now().After(limit) {
			tb.Fatalf("redistest: the replica is not in step after %v\n%s", startTimeout, replica.logTail())
		}
		time.Sleep(5 * time.Millisecond)
	}
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
	for limit := time.Now().Add(startTimeout); ; time.Sleep(5 * time.Millisecond) {
		role, err := redis.Values(s.Do(tb, "ROLE"), nil)
		if err == nil && len(role) == 5 {
			at, _ := redis.String(role[1], nil)
			state, _ := redis.String(role[3], nil)
			if p, _ := redis.Int(role[2], nil); state == "connected" && net.JoinHostPort(at, strconv.Itoa(p)) == addr {
				return
			}
		}
		if time.Now().After(limit) {
			tb.Fatalf("redistest: the replica is not in step with %s after %v: %v\n%s", addr, startTimeout, role, s.logTail())
		}
	}
}

// Lead makes a replica a master.
func (s *Server) Lead(tb testing.TB) {
	tb.Helper()
	s.Do(tb, "REPLICAOF", "NO", "ONE")
}
