package connect

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/redisconn/config"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

func TestUnknownRefusalGetsNoAdvice(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"ERR something else", "DENIED Redis is running in protected mode", "NEWCODE of a later version"} {
		for _, address := range []string{"redis://h:1", "redis-cluster://h:1"} {
			s := at(t, address)
			require.EqualError(t, s.Problem(redis.Error(text)), "Redis at "+address+" refuses: "+text)
			require.Empty(t, Remedy(redis.Error(text)))
		}
	}
	require.EqualError(t, at(t, "redis-cluster://h:1").Problem(redis.Error("MOVED 7 h:2")),
		"Redis at redis-cluster://h:1 refuses: MOVED 7 h:2", "the cluster was named")
}

func TestSentinelBehindServerAddressIsNamed(t *testing.T) {
	t.Parallel()
	sentinel := redistest.StartSentinel(t, redistest.Start(t).Addr())
	s := at(t, "redis://"+sentinel.Addr())
	c, err := s.Dial(t.Context())
	require.NoError(t, err)
	defer func() { _ = c.Close() }() // nothing was written
	_, err = c.Do("EVALSHA", "0", 0)
	require.ErrorContains(t, s.Problem(err), "It is a Sentinel, which has no locks: name the Sentinels")
	require.ErrorContains(t, s.Problem(err), "redis-sentinel://"+sentinel.Addr()+"/MASTER")
	require.ErrorContains(t, at(t, "redis-cluster://"+sentinel.Addr()).Problem(err), "It is a Sentinel")
}

// A pause of writes is that of CLIENT PAUSE and of FAILOVER.
func TestPausedWritesAreReported(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s := at(t, srv.URL())
	late := fmt.Errorf("lock: %w: no reply within 3s", transport.ErrUncertain)
	srv.Do(t, "CLIENT", "PAUSE", time.Hour.Milliseconds(), "WRITE")
	const want = "answers PING, but delays writes: CLIENT PAUSE or FAILOVER has paused them"
	require.Eventually(t, func() bool { // a machine that stalls may answer PING late
		said := s.Problem(late)
		return strings.Contains(said.Error(), want) && errors.Is(said, transport.ErrUncertain)
	}, time.Minute, time.Millisecond)
	srv.Do(t, "CLIENT", "UNPAUSE")
}

func TestUnreachableNodeIsNamedByItsOwnAddress(t *testing.T) {
	t.Parallel()
	s := at(t, "redis-cluster://127.0.0.1:1")
	down := fmt.Errorf("lock: %w: %w", transport.ErrNotSent, os.NewSyscallError("connect", syscall.ECONNREFUSED))
	for _, err := range []error{s.Problem(config.AtNode("h:9", down)), s.member("h:9").Problem(down)} {
		require.ErrorContains(t, err, "cannot reach Redis at h:9, a master of "+s.String()+": connection refused. If it is down, a replica replaces it")
		require.ErrorContains(t, err, "see cluster-announce-ip")
		require.ErrorIs(t, err, transport.ErrNotSent)
	}
	sentinels := at(t, "redis-sentinel://h:1/m")
	for _, err := range []error{sentinels.Problem(config.AtNode("h:9", down)), sentinels.member("h:9").Problem(down)} {
		require.ErrorContains(t, err, "cannot reach Redis at h:9, the master that redis-sentinel://h:1/m names: connection refused. If it is down, the Sentinels")
		require.ErrorContains(t, err, "see replica-announce-ip")
	}
}

func TestExplainAddsTheRemedyOfARefusal(t *testing.T) {
	t.Parallel()
	full := fmt.Errorf("inspect: %w", &transport.ServerError{Text: "NOREPLICAS Not enough good replicas to write."})
	require.EqualError(t, Explain(full), "the server refuses: NOREPLICAS Not enough good replicas to write. "+remedies["NOREPLICAS"])
	require.ErrorIs(t, Explain(full), full)
	require.EqualError(t, Explain(redis.Error("ERR something else")), "the server refuses: ERR something else")
	for _, err := range []error{nil, transport.ErrNotSent, at(t, "redis://h:1").Problem(full)} {
		require.Equal(t, err, Explain(err))
	}
}
