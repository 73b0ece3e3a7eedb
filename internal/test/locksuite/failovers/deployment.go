package failovers

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

const (
	// soon is far more than anything takes that is waited for.
	soon = time.Minute
	// announceTime is how long the first message of each Sentinel may take: they announce the
	// master every two seconds.
	announceTime = 2500 * time.Millisecond
)

// Adapter makes the transports that are tried.
type Adapter struct {
	// Name is the adapter's, for the table.
	Name string
	// Cluster returns a transport to a cluster for one client only, which closes it.
	Cluster func(tb testing.TB, c *redistest.Cluster) transport.Transport
	// Sentinels returns one to the master that Sentinels watch.
	Sentinels func(tb testing.TB, set *redistest.Sentinels) transport.Transport
}

// deployment is where a master is replaced.
type deployment interface {
	// open returns a new transport.
	open(tb testing.TB) transport.Transport
	// prefix is what the names of all locks begin with.
	prefix() string
	// master returns the master of all locks that are tried, and its replicas.
	master(tb testing.TB) (*redistest.Server, []*redistest.Server)
	// failover replaces the master by hand, and careful reports whether that waits until a
	// replica has everything.
	failover(tb testing.TB)
	careful() bool
	// settled returns when all is ready for a failure.
	settled(tb testing.TB)
}

// inCluster is a cluster, of which the shard that serves tag is broken.
type inCluster struct {
	adapter Adapter
	cluster *redistest.Cluster
	tag     string
}

func (p inCluster) open(tb testing.TB) transport.Transport {
	tb.Helper()
	return p.adapter.Cluster(tb, p.cluster)
}

func (p inCluster) prefix() string { return "{" + p.tag + "}" }

func (p inCluster) master(tb testing.TB) (*redistest.Server, []*redistest.Server) {
	tb.Helper()
	m := p.cluster.Owner(tb, p.tag)
	return m, p.cluster.Replicas(tb, m)
}

func (p inCluster) failover(tb testing.TB) {
	tb.Helper()
	_, replicas := p.master(tb)
	p.cluster.Failover(tb, replicas[0])
}

func (inCluster) careful() bool { return true }

func (inCluster) settled(testing.TB) {}

// withSentinels is a master, its replicas and their Sentinels.
type withSentinels struct {
	adapter Adapter
	set     *redistest.Sentinels
}

func (p withSentinels) open(tb testing.TB) transport.Transport {
	tb.Helper()
	return p.adapter.Sentinels(tb, p.set)
}

func (withSentinels) prefix() string { return "" }

func (p withSentinels) master(tb testing.TB) (*redistest.Server, []*redistest.Server) {
	tb.Helper()
	m := p.set.Master(tb)
	return m, slices.DeleteFunc(p.set.Servers(), func(s *redistest.Server) bool { return s == m })
}

func (p withSentinels) failover(tb testing.TB) {
	tb.Helper()
	p.set.Failover(tb)
}

func (withSentinels) careful() bool { return false }

// settled waits until all nodes may have received the Sentinels' messages, and until none
// of them has stopped working for half a minute because this machine was too busy (TILT).
func (p withSentinels) settled(tb testing.TB) {
	tb.Helper()
	time.Sleep(announceTime)
	for _, s := range p.set.Sentinels() {
		require.Eventually(tb, func() bool {
			info, _ := s.Do(tb, "INFO", "sentinel").([]byte)
			return strings.Contains(string(info), "sentinel_tilt:0")
		}, soon, 100*time.Millisecond, "a Sentinel does nothing: the machine is too busy")
	}
}

// inStep waits until the replicas have all keys of the master.
func inStep(tb testing.TB, p deployment) {
	tb.Helper()
	master, replicas := p.master(tb)
	keys := master.Do(tb, "DBSIZE")
	for _, r := range replicas {
		require.Eventually(tb, func() bool { return r.Do(tb, "DBSIZE") == keys }, soon, 5*time.Millisecond, "a replica has not all locks")
	}
}

// mayCutOff are the options of servers for [cutOff].
func mayCutOff() redistest.Option { return redistest.WithArgs("--enable-debug-command", "local") }

// cutOff ends the replication: what is written from now on only the master has. The
// replicas come back with another history than the master's, and wait for all of it, which
// the master puts off. That costs neither side anything.
func cutOff(tb testing.TB, p deployment) {
	tb.Helper()
	master, _ := p.master(tb)
	master.Do(tb, "CONFIG", "SET", "repl-diskless-sync", "yes")
	master.Do(tb, "CONFIG", "SET", "repl-diskless-sync-delay", "3600")
	master.Do(tb, "DEBUG", "CHANGE-REPL-ID")
	master.KillClients(tb, "replica")
	require.Eventually(tb, func() bool { return len(master.Replicas(tb)) == 0 }, soon, 5*time.Millisecond, "a replica is not cut off")
}

// listened waits until each of the channels has a listener.
func listened(tb testing.TB, p deployment, channels []string) {
	tb.Helper()
	master, _ := p.master(tb)
	require.Eventually(tb, func() bool {
		heard := " " + strings.Join(master.Channels(tb), " ") + " "
		return !slices.ContainsFunc(channels, func(c string) bool { return !strings.Contains(heard, " "+c+" ") })
	}, soon, 20*time.Millisecond, "the waiters are not subscribed")
}
