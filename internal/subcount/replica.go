package subcount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redlatch/redlatch/transport"
)

var (
	errSilence  = errors.New("no reply")
	errClosed   = fmt.Errorf("%w: %w", transport.ErrNotSent, transport.ErrClosed)
	errNoDialer = errors.New("the client cannot dial it: the client has its own dial function; see WithReplicaDialer")
)

// replica is a current or former replica in ROLE.
type replica struct {
	addr string
	node Replica

	// Guarded by Counter.mu.
	busy int       // counts in progress
	used time.Time // when the last count ended
	left time.Time // when ROLE ceased to list it; zero if it still does
}

// use returns the current and former replicas to query. The caller must release them.
func (c *Counter) use(s *replicaList) ([]*replica, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	if c.cfg.Replica == nil && len(s.replicas) > 0 {
		return nil, fmt.Errorf("redlatch: cannot count subscribers on replica %s: %w", s.replicas[0], errNoDialer)
	}
	for _, addr := range s.replicas {
		if c.replicas[addr] == nil {
			m := &replica{addr: addr, node: c.cfg.Replica(addr), used: time.Now()}
			c.replicas[addr] = m
			c.wg.Go(func() { c.keep(m) })
		}
	}
	replicas := make([]*replica, 0, len(c.replicas))
	for _, m := range c.replicas {
		m.busy++
		replicas = append(replicas, m)
	}
	slices.SortFunc(replicas, func(a, b *replica) int { return strings.Compare(a.addr, b.addr) })
	return replicas, nil
}

func (c *Counter) release(replicas []*replica) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range replicas {
		m.busy--
		m.used = now
	}
}

// update records which replicas ROLE lists. c.mu must be held.
func (c *Counter) update(s *replicaList) {
	for addr, m := range c.replicas {
		switch {
		case s.shows(addr):
			m.left = time.Time{}
		case m.left.IsZero():
			m.left = s.at
		case s.at.Sub(m.left) >= formerTime:
			delete(c.replicas, addr)
		}
	}
}

// forget reports whether a replica's failure can be ignored. A former replica that was promoted or cannot be reached is
// not queried again.
func (c *Counter) forget(ctx context.Context, m *replica, err error) bool {
	var refusal *transport.ServerError
	if errors.As(err, &refusal) {
		return false // it is alive
	}
	if why := context.Cause(ctx); why != nil && !errors.Is(why, errSilence) {
		return false // it did not have enough time to answer
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.left.IsZero() {
		return false
	}
	if c.replicas[m.addr] == m {
		delete(c.replicas, m.addr)
	}
	return true
}

// keep closes a replica's connection after a minute without use, or when the Counter is closed.
func (c *Counter) keep(m *replica) {
	t := time.NewTimer(idleTime)
	defer t.Stop()
	for {
		select {
		case <-c.ctx.Done():
			_ = m.node.Close()
			return
		case <-t.C:
		}
		left := c.closeIfIdle(m)
		if left <= 0 {
			_ = m.node.Close()
			return
		}
		t.Reset(left)
	}
}

// closeIfIdle removes an unused replica, or returns when to check it again.
func (c *Counter) closeIfIdle(m *replica) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.busy > 0 {
		return idleTime
	}
	if left := idleTime - time.Since(m.used); left > 0 {
		return left
	}
	if c.replicas[m.addr] == m {
		delete(c.replicas, m.addr)
	}
	return 0
}
