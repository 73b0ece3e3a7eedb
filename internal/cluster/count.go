package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

// Listeners implements transport.Counter. It queries the masters and their replicas for both kinds
// of subscriptions, and returns the larger number, because a waiter uses either kind or both.
func (c *Cluster) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	if len(channels) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.cfg.Conn.Command,
		fmt.Errorf("no reply within %v: %w", c.cfg.Conn.Command, context.DeadlineExceeded))
	defer cancel()
	counts := make([]int64, len(channels))
	groups, err := c.group(ctx, channels)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	errs := make([]error, len(groups))
	for i, g := range groups {
		wg.Go(func() { errs[i] = g.count(ctx, c, counts) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err // only one error, because they may belong to different classes
		}
	}
	return counts, nil
}

type group struct {
	node     *node
	channels []string
	places   []int // indexes of the channels in the result
}

// group groups channels by their masters. It adds a pending call at each master; [group.count]
// removes it.
func (c *Cluster) group(ctx context.Context, channels []string) ([]*group, error) {
	if err := c.await(ctx, channels); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosedNotSent
	}
	byNode := map[*node]*group{}
	var groups []*group
	for i, channel := range channels {
		n := c.table[transport.HashSlot(channel)]
		if n == nil {
			return nil, unserved(c.err)
		}
		if byNode[n] == nil {
			byNode[n] = &group{node: n}
			groups = append(groups, byNode[n])
		}
		g := byNode[n]
		g.channels, g.places = append(g.channels, channel), append(g.places, i)
	}
	for _, g := range groups {
		g.node.pending++
	}
	return groups, nil
}

// await waits for a refresh if the master of a channel's slot is unknown.
func (c *Cluster) await(ctx context.Context, channels []string) error {
	c.mu.Lock()
	known := true
	for _, channel := range channels {
		known = known && c.table[transport.HashSlot(channel)] != nil
	}
	refreshed := c.refreshed
	if !known {
		c.begin()
	}
	c.mu.Unlock()
	if known {
		return nil
	}
	c.refresh()
	select {
	case <-refreshed:
		return nil
	case <-c.ctx.Done():
		return errClosedNotSent
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", transport.ErrNotSent, context.Cause(ctx))
	}
}

func (n *node) replicas(ctx context.Context) ([]string, error) {
	reply, err := mux.Do(ctx, n.mux, &transport.Call{Command: "CLUSTER", Args: []any{"SLOTS"}})
	if err != nil {
		return nil, fmt.Errorf("redlatch: cannot list the replicas of %s: %w", n.addr, err)
	}
	spans, err := spansOf(reply, n.addr)
	if err != nil {
		return nil, fmt.Errorf("redlatch: cannot list the replicas of %s: %w", n.addr, err)
	}
	for _, s := range spans {
		if s.master == n.addr {
			return s.replicas, nil
		}
	}
	return nil, fmt.Errorf("%w: %s is no longer a master", transport.ErrNotSent, n.addr)
}

func (g *group) count(ctx context.Context, c *Cluster, counts []int64) error {
	var numbers [kinds][]int64
	var errs [kinds]error
	var wg sync.WaitGroup
	for k := range kinds {
		wg.Go(func() { numbers[k], errs[k] = g.node.counts[k].Listeners(ctx, g.channels...) })
	}
	wg.Wait()
	c.mu.Lock()
	g.node.pending--
	c.mu.Unlock()
	for k, err := range errs {
		var refusal *transport.ServerError
		if err != nil && (kind(k) == published(c.cfg.Publish) || !errors.As(err, &refusal)) {
			return err
		}
	}
	for i, place := range g.places {
		for k := range kinds {
			if numbers[k] != nil {
				counts[place] = max(counts[place], numbers[k][i])
			}
		}
	}
	return nil
}
