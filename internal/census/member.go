package census

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
	errNoDialer = errors.New("the client cannot dial it: it was made with a dial function; see WithReplicaDialer")
)

// member is a replica that is or was in ROLE, and has a connection.
type member struct {
	addr string
	node Replica

	// Guarded by Census.mu.
	busy int       // counts under way
	used time.Time // when the last one ended
	left time.Time // when ROLE no longer showed it; zero: it does
}

// enlist returns the replicas to ask: those of the survey, and the former ones.
// They must be released.
func (c *Census) enlist(s *survey) ([]*member, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	if c.cfg.Replica == nil && len(s.replicas) > 0 {
		return nil, fmt.Errorf("redlatch: subscribers on replica %s cannot be counted: %w", s.replicas[0], errNoDialer)
	}
	for _, addr := range s.replicas {
		if c.members[addr] == nil {
			m := &member{addr: addr, node: c.cfg.Replica(addr), used: time.Now()}
			c.members[addr] = m
			c.wg.Go(func() { c.keep(m) })
		}
	}
	replicas := make([]*member, 0, len(c.members))
	for _, m := range c.members {
		m.busy++
		replicas = append(replicas, m)
	}
	slices.SortFunc(replicas, func(a, b *member) int { return strings.Compare(a.addr, b.addr) })
	return replicas, nil
}

// release gives back what enlist returned.
func (c *Census) release(replicas []*member) {
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range replicas {
		m.busy--
		m.used = now
	}
}

// muster notes which members are in ROLE now.
func (c *Census) muster(s *survey) {
	for addr, m := range c.members {
		switch {
		case s.shows(addr):
			m.left = time.Time{}
		case m.left.IsZero():
			m.left = s.at
		case s.at.Sub(m.left) >= formerTime:
			delete(c.members, addr)
		}
	}
}

// forget decides about a failure to ask a replica, and reports whether it may be
// ignored: a former replica that cannot be reached, or is none any more, has no
// listeners of ours, and is asked no more.
func (c *Census) forget(ctx context.Context, m *member, err error) bool {
	var refusal *transport.ServerError
	if errors.As(err, &refusal) {
		return false // it lives
	}
	if why := context.Cause(ctx); why != nil && !errors.Is(why, errSilence) {
		return false // it was not given the time
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.left.IsZero() {
		return false
	}
	if c.members[m.addr] == m {
		delete(c.members, m.addr)
	}
	return true
}

// keep closes a replica's connection when it was not used for long, or with the
// Census.
func (c *Census) keep(m *member) {
	t := time.NewTimer(idleTime)
	defer t.Stop()
	for {
		select {
		case <-c.ctx.Done():
			_ = m.node.Close() // a mux's is always nil
			return
		case <-t.C:
		}
		left := c.retire(m)
		if left <= 0 {
			_ = m.node.Close()
			return
		}
		t.Reset(left)
	}
}

// retire takes out a member that was not used for long, or returns when to look
// again.
func (c *Census) retire(m *member) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.busy > 0 {
		return idleTime
	}
	if left := idleTime - time.Since(m.used); left > 0 {
		return left
	}
	if c.members[m.addr] == m {
		delete(c.members, m.addr)
	}
	return 0
}
