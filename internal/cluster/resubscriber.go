package cluster

import "sync"

// resubscriber holds the subscriptions that may have to move to another node.
type resubscriber struct {
	wake chan struct{}

	mu    sync.Mutex // guards queue
	queue []*subscription
}

// add never blocks.
func (m *resubscriber) add(s *subscription) {
	m.mu.Lock()
	m.queue = append(m.queue, s)
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *resubscriber) take() []*subscription {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := m.queue
	m.queue = nil
	return all
}

// runResubscriber attaches and detaches channel subscriptions until Close.
func (c *Cluster) runResubscriber() {
	for {
		select {
		case <-c.resubscriber.wake:
		case <-c.ctx.Done():
			return
		}
		for _, s := range c.resubscriber.take() {
			s.settle()
		}
	}
}

// evictLocked ends the subscriptions that were waiting for a refresh to find them a
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
	c.refresh()
}
