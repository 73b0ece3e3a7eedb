package cluster

import "sync"

// moves are the subscriptions that the mover is to look at.
type moves struct {
	wake chan struct{}

	mu    sync.Mutex // guards queue
	queue []*subscription
}

// add never blocks.
func (m *moves) add(s *subscription) {
	m.mu.Lock()
	m.queue = append(m.queue, s)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *moves) take() []*subscription {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.queue
	m.queue = nil
	return all
}

// runMoves is the mover.
func (c *Cluster) runMoves() {
	for {
		select {
		case <-c.moves.wake:
		case <-c.ctx.Done():
			return
		}
		for _, s := range c.moves.take() {
			s.settle()
		}
	}
}

// evictLocked ends the subscriptions that were waiting for a survey to find them a
// node, as far as it did not, mu held.
func (c *Cluster) evictLocked(err error) {
	for s := range c.subs {
		if s.at == nil && c.table[s.slot] == nil && s.failPending(unserved(err)) {
			delete(c.subs, s)
		}
	}
}

// unsubscribed notes that the connection on which a kind is listened to at n is lost, or could
// not be made.
func (c *Cluster) unsubscribed(n *node, k kind) {
	c.mu.Lock()
	for s := range c.subs {
		if s.at == n {
			s.unsubscribed(k)
		}
	}
	c.mu.Unlock()
	c.survey()
}
