package engine

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redlatch/redlatch/transport"
)

// Stats are counts of one moment, each read by itself.
type Stats struct {
	// As in redlatch.Stats.
	Held          int
	Oldest        time.Duration
	Waiting       int
	InFlight      int
	Subscriptions int
	InDoubt       int
}

// gauges are what is counted for Stats alone.
type gauges struct {
	subscriptions atomic.Int64
	inDoubt       atomic.Int64
}

// Stats returns the counts of this moment. It takes the same short time however many holds
// and callers there are.
func (e *Engine) Stats() Stats {
	s := Stats{
		Held:          e.Watchdog.Len(),
		Waiting:       int(e.Waiting()),
		InFlight:      e.timeouts.count(),
		Subscriptions: int(e.gauges.subscriptions.Load()),
		InDoubt:       int(e.gauges.inDoubt.Load()),
	}
	if began := e.Watchdog.Oldest(); !began.IsZero() {
		s.Oldest = time.Since(began)
	}
	return s
}

// named is implemented by what holds a lease: it names the lock and its kind.
type named interface{ LockOf() (name, kind string) }

// Held is a hold of this moment.
type Held struct {
	// Of which lock and kind.
	Name, Kind string
	Since      time.Time // when its acquisition was sent
}

// Holds returns all holds of this moment, the oldest first, up to the time between sending and
// reply.
func (e *Engine) Holds() []Held {
	var all []Held
	for _, l := range e.Watchdog.All() {
		if n, can := l.Holder.(named); can {
			name, kind := n.LockOf()
			all = append(all, Held{name, kind, l.Began()})
		}
	}
	return all
}

// Subscribe is the transport's, counted.
func (e *Engine) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	sub, err := e.Transport.Subscribe(ctx, channel)
	if err != nil {
		return nil, err
	}
	e.gauges.subscriptions.Add(1)
	return &counted{Subscription: sub, n: &e.gauges.subscriptions}, nil
}

// counted is a subscription that counts itself out when it is closed.
type counted struct {
	transport.Subscription
	n    *atomic.Int64
	once sync.Once
}

// Close is part of transport.Subscription.
func (c *counted) Close() {
	c.Subscription.Close()
	c.once.Do(func() { c.n.Add(-1) })
}

// count returns how many attempts wait for a reply.
func (t *timeouts) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.waits
}
