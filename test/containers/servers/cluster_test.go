package servers

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
)

// here is an installed program, for clusters.
func here(t *testing.T) program {
	t.Helper()
	p, err := finders[0]()
	require.NoError(t, err)
	return p
}

func TestAClusterThatNamesOtherAddressesIsRefused(t *testing.T) {
	t.Parallel()
	var outside []string
	for _, addr := range here(t).startCluster(t) {
		outside = append(outside, redistest.NewProxy(t, addr).Addr())
	}
	_, err := survey(t, outside)
	require.ErrorContains(t, err, "sends clients to 127.0.0.1:")
}

//nolint:tparallel // the subtest is over before what follows
func TestAClusterEndsWithTheProcessThatStartedIt(t *testing.T) {
	t.Parallel()
	var addrs []string
	t.Run("it is started", func(t *testing.T) { addrs = here(t).startCluster(t) })
	for _, addr := range addrs {
		gone := func() bool {
			c, err := redis.Dial("tcp", addr)
			if err == nil {
				_ = c.Close()
			}
			return err != nil
		}
		if !assert.Eventually(t, gone, soon, 10*time.Millisecond, "%s is there still", addr) {
			c, err := redis.Dial("tcp", addr)
			require.NoError(t, err)
			_, _ = c.Do("SHUTDOWN", "NOSAVE") // nothing else would
			_ = c.Close()
		}
	}
}

func TestAClusterWhosePortIsTakenSaysSo(t *testing.T) {
	t.Parallel()
	ports := freePorts(t)
	l, err := net.Listen("tcp", "127.0.0.1:"+ports[3])
	require.NoError(t, err)
	defer func() { _ = l.Close() }()
	p := here(t)
	began := time.Now()
	err = runHere(t, append(clusterCommand(), clusterArgs(p.path, p.cli, "127.0.0.1", ports)...))
	require.ErrorContains(t, err, "a server has ended")
	require.Contains(t, strings.ToLower(err.Error()), "address already in use")
	assert.Less(t, time.Since(began), readyTimeout/2)
}
