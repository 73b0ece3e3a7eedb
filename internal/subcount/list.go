package subcount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

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
