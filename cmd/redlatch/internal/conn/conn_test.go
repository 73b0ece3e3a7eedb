package conn

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/embedded"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCheckTellsAddressesFromOtherThingsWithoutRepeatingThem(t *testing.T) {
	t.Parallel()
	for _, good := range []string{
		"redis://h", "redis://u:p@h:1/2", "rediss://:p@h", "unix:///run/redis.sock?db=1", "redis://[::1]:6379",
	} {
		require.NoError(t, Check(good), good)
	}
	for _, bad := range []string{
		"", "localhost:6379", "user:sesame@host:6379", "redis://", "redis:///1", "http://u:sesame@h", "unix://", "redis://u:sesame@h:port", ":",
	} {
		err := Check(bad)
		require.ErrorContains(t, err, "REDIS_URL", bad)
		require.NotContains(t, err.Error(), "sesame")
	}
}

func TestShowLeavesOutUserPasswordAndOptions(t *testing.T) {
	t.Parallel()
	require.Equal(t, "redis://h:1/2", Show("redis://u:sesame@h:1/2?x=sesame"))
	require.Equal(t, "unix:///run/r.sock", Show("unix://:sesame@/run/r.sock?db=1"))
	require.Equal(t, "the given address", Show("user:sesame@host:6379"))
	require.Equal(t, "the given address", Show("redis://u:sesame@h:port"))
}

func TestProblemSaysWhatToDo(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	require.Equal(t, "cannot reach Redis at redis://h:1: connection refused. Start one, or set --redis or REDIS_URL; "+
		"`redlatch serve` starts one for development.",
		Problem("redis://:sesame@h:1", fmt.Errorf("open: %w", refused)))
	require.Contains(t, Problem("redis://h", redis.Error("NOAUTH Authentication required.")),
		"refuses: NOAUTH Authentication required. Check user")
	require.Contains(t, Problem("h:1", refused), "not of the form")
}

func TestReasonIsTheInnermostCause(t *testing.T) {
	t.Parallel()
	require.Equal(t, "no such host", Reason(fmt.Errorf("x: %w", &net.DNSError{Err: "no such host", Name: "h"})))
	require.Equal(t, "timed out", Reason(fmt.Errorf("x: %w", context.DeadlineExceeded)))
	require.Equal(t, "timed out", Reason(os.ErrDeadlineExceeded))
	require.Equal(t, "a; b", Reason(errors.Join(errors.New("a"), errors.New("b"))))
}

func TestDialReachesAServerAndSaysWhyNot(t *testing.T) {
	t.Parallel()
	srv, err := embedded.Start()
	require.NoError(t, err)
	defer srv.Close()
	c, err := Dial(t.Context(), srv.URL())
	require.NoError(t, err)
	_, err = c.Do("PING")
	require.NoError(t, err)
	require.NoError(t, c.Close())

	_, err = Dial(t.Context(), "unix:///no/such/socket")
	require.ErrorIs(t, err, syscall.ENOENT)
	_, err = Dial(t.Context(), "unix:///no/such/socket?db=x")
	require.ErrorContains(t, err, "no database number")
	_, err = Dial(t.Context(), "elsewhere")
	require.Error(t, err)
}
