package subcount

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/transport"
)

type replicaList struct {
	at       time.Time       // when the master was queried
	replaced <-chan struct{} // closed when the connection to the master is replaced
	replicas []string        // addresses
	err      error           // why the replicas are unknown
}

func (s *replicaList) overtaken() bool {
	select {
	case <-s.replaced:
		return true
	default:
		return false
	}
}

func (s *replicaList) good(now time.Time) bool {
	return now.Sub(s.at) < listGood && !s.overtaken()
}

func (s *replicaList) shows(addr string) bool { return slices.Contains(s.replicas, addr) }

// current returns an up-to-date list of replicas. While one caller queries the master, the others
// wait.
func (c *Counter) current(ctx context.Context) (*replicaList, error) {
	select {
	case c.asking <- struct{}{}:
		defer func() { <-c.asking }()
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: %w", transport.ErrNotSent, context.Cause(ctx))
	}
	c.mu.Lock()
	s := c.list
	c.mu.Unlock()
	if s != nil && s.good(time.Now()) {
		return s, s.err
	}
	s = &replicaList{at: time.Now(), replaced: c.cfg.Master.Reconnected()}
	s.replicas, s.err = c.ask(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = s
	switch {
	case errors.Is(s.err, transport.ErrNotSent), errors.Is(s.err, transport.ErrUncertain):
		c.list = nil // the error says nothing about the server
	case s.err == nil:
		c.update(s)
	}
	return s, s.err
}

func (c *Counter) ask(ctx context.Context) ([]string, error) {
	if c.cfg.Replicas != nil {
		return c.cfg.Replicas(ctx)
	}
	hello := begin(c.cfg.Master, "the master", "HELLO", helloArgs)
	defer hello.Abandon()
	role := begin(c.cfg.Master, "the master", "ROLE", nil)
	defer role.Abandon()
	who, err := hello.await(ctx)
	if err != nil {
		return nil, err
	}
	if err := isAlone(who); err != nil {
		return nil, hello.blame(err)
	}
	reply, err := role.await(ctx)
	if err != nil {
		return nil, err
	}
	replicas, err := replicasOf(reply)
	return replicas, role.blame(err)
}

// helloArgs keeps the connection at version 2 of the protocol.
var helloArgs = []any{"2"}

var (
	errCluster   = errors.New("the server is part of a cluster whose other nodes are unknown; a redis-cluster:// address finds them")
	errNoReplica = errors.New("the address reported by the master is not a replica")
	errNoMaster  = errors.New("the server is not a master")
	errTwins     = errors.New("two replicas have the same address")
)

func helloField(reply any, name string) string {
	fields, _ := reply.([]any)
	for pair := range slices.Chunk(fields, 2) {
		if len(pair) == 2 && text(pair[0]) == name {
			return text(pair[1])
		}
	}
	return ""
}

func isAlone(hello any) error {
	switch mode := helloField(hello, "mode"); mode {
	case "standalone":
		return nil
	case "cluster":
		return errCluster
	default:
		return fmt.Errorf("%w: mode %s", transport.ErrBadReply, limits.Quote(mode))
	}
}

func isReplica(hello any) error {
	if helloField(hello, "role") != "replica" {
		return errNoReplica
	}
	return nil
}

// replicasOf parses a master's reply to ROLE: "master", its offset, and the host, port and offset
// of each replica.
func replicasOf(role any) ([]string, error) {
	parts, ok := role.([]any)
	if !ok || len(parts) == 0 {
		return nil, transport.ErrBadReply
	}
	if name := text(parts[0]); name != "master" {
		return nil, fmt.Errorf("%w: role %s", errNoMaster, limits.Quote(name))
	}
	if len(parts) != 3 {
		return nil, transport.ErrBadReply
	}
	replicas, ok := parts[2].([]any)
	if !ok {
		return nil, transport.ErrBadReply
	}
	addrs := make([]string, 0, len(replicas))
	for _, replica := range replicas {
		addr, err := address(replica)
		if err != nil {
			return nil, err
		}
		if slices.Contains(addrs, addr) {
			return nil, fmt.Errorf("%w (%s): cannot query both", errTwins, addr)
		}
		addrs = append(addrs, addr)
	}
	return addrs, nil
}

func address(replica any) (string, error) {
	parts, ok := replica.([]any)
	if !ok || len(parts) < 2 {
		return "", transport.ErrBadReply
	}
	host, port := text(parts[0]), text(parts[1])
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" {
		return "", fmt.Errorf("%w: a replica at %s", transport.ErrBadReply, limits.Quote(net.JoinHostPort(host, port)))
	}
	return net.JoinHostPort(host, port), nil
}

func numbers(reply any, n int) ([]int64, error) {
	pairs, ok := reply.([]any)
	if !ok || len(pairs) != 2*n {
		return nil, transport.ErrBadReply
	}
	counts := make([]int64, n)
	for i := range counts {
		if counts[i], ok = pairs[2*i+1].(int64); !ok || counts[i] < 0 {
			return nil, transport.ErrBadReply
		}
	}
	return counts, nil
}

func text(reply any) string {
	switch t := reply.(type) {
	case string:
		return t
	case []byte:
		return string(t)
	case int64:
		return strconv.FormatInt(t, 10)
	}
	return ""
}
