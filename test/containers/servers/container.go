package servers

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"
)

// The images that the suites run on. Clusters include Redis 6.2, which does not support sharded pub/sub.
var (
	images        = []string{"redis:6.2", "redis:7.2", "redis:8", "valkey/valkey:8"}
	clusterImages = []string{"redis:6.2", "redis:8", "valkey/valkey:8"}
)

const (
	pullTimeout = 5 * time.Minute
	// stopTimeout is the time after which a stopping container is killed. Its data is not needed.
	stopTimeout  = time.Second
	readyTimeout = 90 * time.Second
	port         = "6379"
	clusterReady = "the cluster is ready"
	// clusterNodes is the number of nodes, which are three masters with one replica each.
	clusterNodes    = 6
	clusterAttempts = 3
	// busOffset is the difference between a node's bus port and its port, which is fixed in Redis 6.
	busOffset = 10000
)

//go:embed cluster.sh
var clusterScript string

func imageKind(image string) Kind {
	return Kind{
		Name:    image,
		start:   func(tb testing.TB) string { tb.Helper(); return startContainer(tb, image) },
		cluster: func(tb testing.TB) []string { tb.Helper(); return startClusterContainer(tb, image) },
	}
}

func programOf(image string) (server, cli string) {
	if strings.Contains(image, "valkey") {
		return "valkey-server", "valkey-cli"
	}
	return "redis-server", "redis-cli"
}

func startContainer(tb testing.TB, image string) (addr string) {
	tb.Helper()
	server, _ := programOf(image)
	c, err := run(tb, image, "Ready to accept connections", nil,
		testcontainers.WithEntrypoint(server, "--port", port, "--bind", "0.0.0.0", "--protected-mode", "no",
			"--save", "", "--appendonly", "no"),
		testcontainers.WithExposedPorts(port+"/tcp"))
	if err == nil {
		addr, err = c.PortEndpoint(tb.Context(), port+"/tcp", "")
	}
	if err != nil {
		tb.Fatalf("servers: %s: %v; %s=local runs on the installed programs instead", image, err, Variable)
	}
	if number, local := strings.CutPrefix(addr, "localhost:"); local {
		// On ::1, this port may belong to another container.
		addr = net.JoinHostPort("127.0.0.1", number)
	}
	return addr
}

// startClusterContainer publishes the ports of the nodes unchanged (see the package comment). If that fails, it tries
// other ports.
func startClusterContainer(tb testing.TB, image string) (addrs []string) {
	tb.Helper()
	server, cli := programOf(image)
	for attempt := 1; ; attempt++ {
		ports := freePorts(tb)
		exposed := make([]string, len(ports))
		for i, port := range ports {
			exposed[i] = port + "/tcp"
		}
		_, err := run(tb, image, clusterReady, ports,
			testcontainers.WithEntrypoint("sh", "-c", clusterScript, "cluster.sh"),
			testcontainers.WithCmd(append([]string{server, cli, "0.0.0.0", "1"}, ports...)...),
			testcontainers.WithExposedPorts(exposed...))
		if err == nil {
			for _, port := range ports {
				addrs = append(addrs, net.JoinHostPort("127.0.0.1", port))
			}
			return addrs
		}
		if attempt == clusterAttempts {
			tb.Fatalf("servers: start a cluster of %s: %v", image, err)
		}
		tb.Logf("servers: start a cluster on ports %v: %v; trying other ports", ports, err)
	}
}

// freePorts returns ports below the range of ephemeral ports. Both the ports and their bus ports are free.
func freePorts(tb testing.TB) (ports []string) {
	tb.Helper()
	for range 1000 {
		port := 10000 + rand.IntN(12000) //nolint:gosec // a port to try, not a secret
		text := strconv.Itoa(port)
		if slices.Contains(ports, text) || !free(port) || !free(port+busOffset) {
			continue
		}
		if ports = append(ports, text); len(ports) == clusterNodes {
			return ports
		}
	}
	tb.Fatal("servers: no free ports for a cluster")
	return nil
}

func free(port int) bool {
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	return err == nil && l.Close() == nil
}

// run starts a container and waits until it has printed ready. The ports in asThemselves are published unchanged.
func run(tb testing.TB, image, ready string, asThemselves []string, opts ...testcontainers.ContainerCustomizer) (*testcontainers.DockerContainer, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), pullTimeout)
	defer cancel()
	opts = append(opts,
		testcontainers.WithLogger(log.TestLogger(tb)),
		testcontainers.WithHostConfigModifier(func(hc *container.HostConfig) { hc.PortBindings = bindings(asThemselves) }),
		testcontainers.WithWaitStrategyAndDeadline(readyTimeout, wait.ForLog(ready)))
	c, err := testcontainers.Run(ctx, image, opts...)
	testcontainers.CleanupContainer(tb, c, testcontainers.StopTimeout(stopTimeout))
	tb.Cleanup(func() {
		if c != nil && tb.Failed() {
			tb.Logf("servers: last output of %s:\n%s", image, lastWords(c))
		}
	})
	if err != nil && c != nil {
		err = fmt.Errorf("%w; its output:\n%s", err, lastWords(c))
	}
	return c, err
}

func bindings(ports []string) network.PortMap {
	all := network.PortMap{}
	for _, port := range ports {
		all[network.MustParsePort(port+"/tcp")] = []network.PortBinding{
			{HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1}), HostPort: port},
		}
	}
	return all
}

func lastWords(c testcontainers.Container) string {
	ctx, cancel := context.WithTimeout(context.Background(), ioTimeout)
	defer cancel()
	logs, err := c.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = logs.Close() }()
	text, _ := io.ReadAll(logs)
	const keep = 2000
	return strings.TrimSpace(string(text[max(0, len(text)-keep):]))
}
