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

// replicaList is what the master said about its replicas.
type replicaList struct {
	at       time.Time       // when it was asked
	replaced <-chan struct{} // closed when the connection was replaced since
	replicas []string        // addresses
	err      error           // why the replicas are not known
}

// overtaken reports whether the connection to the master was replaced since.
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

// current returns a list of replicas that is good, and makes one if need be. One caller
// makes it, the others wait for it.
func (c *Counter) current(ctx context.Context) (*replicaList, error) {
	for {
		s, over := c.begin(time.Now())
		switch {
		case s != nil:
			return s, s.err
		case over == nil:
			return c.renew(ctx)
		}
		select {
		case <-over:
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %w", transport.ErrNotSent, context.Cause(ctx))
		}
	}
}

// begin returns a list of replicas that is good, or what is closed when the one under way is
// over, or neither: then the caller must make it and call end.
func (c *Counter) begin(now time.Time) (s *replicaList, over <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.list != nil && c.list.good(now):
		return c.list, nil
	case c.asking != nil:
		return nil, c.asking
	}
	c.asking = make(chan struct{})
	return nil, nil
}

// end ends what begin began, with nil when the master did not answer.
func (c *Counter) end(s *replicaList) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = s
	close(c.asking)
	c.asking = nil
	if s != nil && s.err == nil {
		c.update(s)
	}
}

func (c *Counter) renew(ctx context.Context) (s *replicaList, err error) {
	defer func() { c.end(s) }()
	s = &replicaList{at: time.Now(), replaced: c.cfg.Master.Reconnected()}
	s.replicas, s.err = c.ask(ctx)
	if err = s.err; errors.Is(err, transport.ErrNotSent) || errors.Is(err, transport.ErrUncertain) {
		s = nil // it says nothing about the server
	}
	return s, err
}

// ask asks the master for its identity and where its replicas are.
func (c *Counter) ask(ctx context.Context) ([]string, error) {
	if c.cfg.Replicas != nil {
		return c.cfg.Replicas(ctx)
	}
	r := newRound(0)
	defer r.abandon()
	r.start(c.cfg.Master, "the master", "HELLO", helloArgs)
	r.start(c.cfg.Master, "the master", "ROLE", nil)
	who, err := r.await(ctx, 0)
	if err != nil {
		return nil, err
	}
	if err := isAlone(who); err != nil {
		return nil, r.blame(0, err)
	}
	role, err := r.await(ctx, 1)
	if err != nil {
		return nil, err
	}
	replicas, err := replicasOf(role)
	return replicas, r.blame(1, err)
}

// Version 2 is that of the protocol which the connection has already.
var helloArgs = []any{"2"}

var (
	errCluster   = errors.New("the server is part of a cluster, and its other nodes are not known")
	errNoReplica = errors.New("the address that the master gives leads to a server that is no replica")
	errNoMaster  = errors.New("the server is no master")
	errTwins     = errors.New("two replicas have the same address")
)

// helloField returns the text of a field in the reply to HELLO, "" if there is
// none.
func helloField(reply any, name string) string {
	fields, _ := reply.([]any)
	for pair := range slices.Chunk(fields, 2) {
		if len(pair) == 2 && text(pair[0]) == name {
			return text(pair[1])
		}
	}
	return ""
}

// isAlone checks that the server that answered HELLO is in no cluster.
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

// isReplica checks that it is a replica.
func isReplica(hello any) error {
	if helloField(hello, "role") != "replica" {
		return errNoReplica
	}
	return nil
}

// replicasOf returns the addresses in a master's reply to ROLE: "master", its
// offset, and for each replica that is in step its host, port and offset.
func replicasOf(role any) ([]string, error) {
	parts, ok := role.([]any)
	if !ok || len(parts) == 0 {
		return nil, transport.ErrBadReply
	}
	if name := text(parts[0]); name != "master" {
		return nil, fmt.Errorf("%w, but a %s", errNoMaster, limits.Quote(name))
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
			return nil, fmt.Errorf("%w, %s: one of them cannot be asked", errTwins, addr)
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

// numbers returns the n numbers in a reply to PUBSUB NUMSUB: channels and numbers
// in turn.
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

// text returns a reply that is text, and "" for others.
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
