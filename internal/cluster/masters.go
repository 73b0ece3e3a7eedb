package cluster

import (
	"context"
	"slices"

	"github.com/redlatch/redlatch/transport"
)

// Master is one master of a cluster, for commands about that server alone, such as SCAN. It is
// safe for concurrent use.
type Master struct {
	of   *Cluster
	node *node
}

// Addr returns host:port of the master.
func (m Master) Addr() string { return m.node.addr }

// Start is that of transport.Transport: the call goes to this server, whatever keys it has, and
// an answer that sends it elsewhere is its error.
func (m Master) Start(call *transport.Call, done transport.Done) {
	m.of.mu.Lock()
	m.node.pending++
	m.of.mu.Unlock()
	m.node.mux.Start(call, func(reply any, err error) {
		m.of.mu.Lock()
		m.node.pending--
		m.of.mu.Unlock()
		if _, moved := redirected(err, m.node.addr); err != nil && (moved || outdated(err)) {
			m.of.refresh()
		}
		done(reply, err)
	})
}

// Close leaves the connection to the cluster.
func (Master) Close() error { return nil }

// Masters returns the masters that serve slots, as they are known now; the first time it asks for
// them. It waits no longer than ctx says. A master that is none any more answers for a minute.
func (c *Cluster) Masters(ctx context.Context) (all []Master, err error) {
	if err := c.await(ctx, []string{""}); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := map[*node]bool{}
	for _, n := range c.table {
		if n != nil && !seen[n] {
			seen[n] = true
			all = append(all, Master{c, n})
		}
	}
	if len(all) == 0 {
		return nil, unserved(c.err)
	}
	return all, nil
}

// Masters returns the addresses of the masters of a cluster, each once, in the order of
// their slots, by what the node at from has answered to CLUSTER SLOTS.
func Masters(reply any, from string) ([]string, error) {
	spans, err := spansOf(reply, from)
	if err != nil {
		return nil, err
	}
	var masters []string
	for _, s := range spans {
		if !slices.Contains(masters, s.master) {
			masters = append(masters, s.master)
		}
	}
	return masters, nil
}
