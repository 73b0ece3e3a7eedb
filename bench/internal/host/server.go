// Package host runs a Redis server and other processes on chosen processors.
package host

import (
	"maps"
	"strings"
	"testing"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// Server is a single Redis server without persistence, or the masters of a cluster.
type Server struct{ nodes []*redistest.Server }

func options(p Placement) []redistest.Option {
	return []redistest.Option{redistest.WithProcessors(p.Server()...), redistest.WithArgs("--maxclients", "20000")}
}

// StartServer starts a server that runs until tb ends.
func StartServer(tb testing.TB, p Placement) Server {
	tb.Helper()
	return Server{nodes: []*redistest.Server{redistest.Start(tb, options(p)...)}}
}

// StartCluster starts a cluster without replicas that runs until tb ends.
func StartCluster(tb testing.TB, p Placement, masters int) Server {
	tb.Helper()
	return Server{nodes: redistest.StartCluster(tb, masters, 0, options(p)...).Nodes()}
}

// Addr returns the host:port of each node, separated by commas.
func (s Server) Addr() string {
	var all []string
	for _, node := range s.nodes {
		all = append(all, node.Addr())
	}
	return strings.Join(all, ",")
}

// Clear deletes all keys and cached scripts.
func (s Server) Clear(tb testing.TB) {
	tb.Helper()
	for _, node := range s.nodes {
		node.Do(tb, "FLUSHALL")
		node.Do(tb, "SCRIPT", "FLUSH")
	}
}

// Info returns the sum of all nodes' statistics.
func (s Server) Info(tb testing.TB) Info {
	tb.Helper()
	var sum Info
	for _, node := range s.nodes {
		sum = sum.plus(infoOf(tb, node))
	}
	return sum
}

func (i Info) plus(other Info) Info {
	if i.commands == nil {
		return other
	}
	all := maps.Clone(i.commands)
	for name, more := range other.commands {
		sum := all[name]
		sum.calls += more.calls
		sum.micros += more.micros
		all[name] = sum
	}
	i.commands = all
	i.CPU += other.CPU
	return i
}
