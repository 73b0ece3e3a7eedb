package servers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/testcontainers/testcontainers-go/wait"
)

// images are what single servers run in, clusterImages what clusters do: Redis 6.2 knows
// no sharded pub/sub. Without a full version they are what users of that series run.
var (
	images        = []string{"redis:6.2", "redis:7.2", "redis:8", "valkey/valkey:8"}
	clusterImages = []string{"redis:6.2", "redis:8", "valkey/valkey:8"}
)

const (
	// pullTimeout bounds the start of a container, whose image may have to be fetched.
	pullTimeout = 5 * time.Minute
	// stopTimeout is how long a container may take to end before it is killed: its data is
	// not needed.
	stopTimeout = time.Second
	// port is what a single server in a container listens on.
	port = "6379"
)

// far returns why clusters of the engine cannot be reached, nil when they can: what it
// publishes is reached by another address than this machine's loopback. Another error is
// one of the engine, which says no more than that it is there.
func (e engine) far(ctx context.Context) (why, err error) {
	ctx, cancel := context.WithTimeout(ctx, ioTimeout)
	defer cancel()
	type answer struct {
		host string
		err  error
	}
	came := make(chan answer, 1)
	go func() { // what it calls asks without a bound, so it may stay until the process ends
		host, err := publishedAt(ctx)
		came <- answer{host, err}
	}()
	var a answer
	select {
	case a = <-came:
	case <-ctx.Done():
		a.err = fmt.Errorf("it does not answer within %v when it is asked about itself", ioTimeout)
	}
	switch {
	case a.err != nil:
		return nil, fmt.Errorf("the Docker engine at %s: %w", e.host, a.err)
	case !isLoopback(a.host):
		return fmt.Errorf("what the Docker engine publishes is reached at %s, which nodes in containers could not tell clients", a.host), nil
	}
	return nil, nil
}

// publishedAt returns the host where ports are that the engine publishes.
func publishedAt(ctx context.Context) (host string, err error) {
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return "", err
	}
	defer func() { _ = provider.Close() }() // nothing was started
	return provider.DaemonHost(ctx)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// kind is the servers of an image.
func (e engine) kind(image string) Kind {
	return Kind{
		Name:    image,
		start:   func(tb testing.TB) string { tb.Helper(); return startContainer(tb, image) },
		cluster: func(tb testing.TB) []string { tb.Helper(); return startClusterContainer(tb, image) },
	}
}

// programOf returns what the programs in an image are called.
func programOf(image string) (server, cli string) {
	if strings.Contains(image, "valkey") {
		return "valkey-server", "valkey-cli"
	}
	return "redis-server", "redis-cli"
}

// startContainer starts a single server.
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
		// Its other address, ::1, may have another container's port of this number.
		addr = net.JoinHostPort("127.0.0.1", number)
	}
	return addr
}

// startClusterContainer starts a cluster, all nodes in one container, and publishes each
// of their ports as itself: see the package's comment.
func startClusterContainer(tb testing.TB, image string) []string {
	tb.Helper()
	server, cli := programOf(image)
	return onFreePorts(tb, func(ports []string) error {
		tb.Helper()
		exposed := make([]string, len(ports))
		for i, port := range ports {
			exposed[i] = port + "/tcp"
		}
		_, err := run(tb, image, clusterReady, ports,
			testcontainers.WithEntrypoint(clusterCommand()...),
			testcontainers.WithCmd(clusterArgs(server, cli, "0.0.0.0", ports)...),
			testcontainers.WithExposedPorts(exposed...))
		return err
	})
}

// run runs a container until the test ends, and returns when it has said that it is
// ready. The ports in asThemselves are published as themselves.
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
	tb.Cleanup(func() { // before that
		if c != nil && tb.Failed() {
			tb.Logf("servers: last words of %s:\n%s", image, lastWords(c))
		}
	})
	if err != nil && c != nil {
		err = fmt.Errorf("%w; it said:\n%s", err, lastWords(c))
	}
	return c, err
}

// bindings publishes ports as themselves on the loopback interface.
func bindings(ports []string) network.PortMap {
	all := network.PortMap{}
	for _, port := range ports {
		all[network.MustParsePort(port+"/tcp")] = []network.PortBinding{
			{HostIP: netip.AddrFrom4([4]byte{127, 0, 0, 1}), HostPort: port},
		}
	}
	return all
}

// lastWords returns the end of what a container has printed.
func lastWords(c testcontainers.Container) string {
	ctx, cancel := context.WithTimeout(context.Background(), ioTimeout)
	defer cancel()
	logs, err := c.Logs(ctx)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = logs.Close() }() // it was read as far as it went
	text, err := io.ReadAll(logs)
	const keep = 2000
	return strings.TrimSpace(string(text[max(0, len(text)-keep):])) + errorText(err)
}

func errorText(err error) string {
	if err == nil || errors.Is(err, io.EOF) {
		return ""
	}
	return " (" + err.Error() + ")"
}
