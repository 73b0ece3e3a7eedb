package servers

import (
	_ "embed" // cluster.sh
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

const (
	// clusterNodes is how many nodes a cluster has: three masters, a replica each.
	clusterNodes = 6
	// clusterReady is what cluster.sh prints in the end.
	clusterReady = "the cluster is ready"
	// clusterAttempts is how many sets of ports are tried: another process may take one.
	clusterAttempts = 3
	// busOffset is how far above its port a node's bus port is by default; it cannot be set
	// in Redis 6.
	busOffset = 10000
)

//go:embed cluster.sh
var clusterScript string

// clusterCommand is the command that runs cluster.sh, in any place with a shell.
func clusterCommand() []string { return []string{"sh", "-c", clusterScript, "cluster.sh"} }

// clusterArgs are what cluster.sh is given.
func clusterArgs(server, cli, bind string, ports []string) []string {
	return append([]string{server, cli, bind, "1"}, ports...)
}

// onFreePorts runs start with as many ports as a cluster has nodes, once more with
// others when it fails, and returns the addresses.
func onFreePorts(tb testing.TB, start func(ports []string) error) (addrs []string) {
	tb.Helper()
	for attempt := 1; ; attempt++ {
		ports := freePorts(tb)
		err := start(ports)
		if err == nil {
			for _, port := range ports {
				addrs = append(addrs, net.JoinHostPort("127.0.0.1", port))
			}
			return addrs
		}
		if attempt == clusterAttempts {
			tb.Fatalf("servers: start a cluster: %v", err)
		}
		tb.Logf("servers: start a cluster on ports %v: %v; once more on others", ports, err)
	}
}

// freePorts returns ports without a listener, also on the one that goes with each. They,
// too, are below those that systems give to outgoing connections.
func freePorts(tb testing.TB) []string {
	tb.Helper()
	seen := map[int]bool{}
	var ports []string
	for tries := 0; len(ports) < clusterNodes; tries++ {
		if tries == 1000 {
			tb.Fatal("servers: no free ports for a cluster")
		}
		port := 10000 + rand.IntN(12000) //nolint:gosec // a port to try, not a secret
		if seen[port] || !free(port) || !free(port+busOffset) {
			continue
		}
		seen[port] = true
		ports = append(ports, strconv.Itoa(port))
	}
	return ports
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return false
	}
	return l.Close() == nil
}
