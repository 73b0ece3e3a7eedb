package list

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestListShowsSemaphores(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "SET", "pool", 3, "PX", time.Hour.Milliseconds())
	s.Do(t, "ZADD", codec.PermitsKey("pool"), 1, "0123456789abcdef", codec.PermitForever, "fedcba9876543210")
	s.Do(t, "SET", "visits", 41)
	got := program.Finish(t, s.URL(), "list")
	require.Equal(t, 0, got.Code, got.Stderr)
	require.Regexp(t, `(?m)^pool +sem    2 taken, 3 available +- +(1h|59m)\S* +-$`, got.Stdout)
	require.NotContains(t, got.Stdout, "visits")
	require.Contains(t, got.Stdout, "\n1 semaphore\n")
	program.Narrow(t, got.Stdout)

	s.Do(t, "HSET", "orders", program.SomeOwner, 1)
	s.Do(t, "PERSIST", "pool")
	require.Contains(t, program.Finish(t, s.URL(), "list").Stdout, "\n2 locks and semaphores\n")
	require.JSONEq(t, `{"name":"pool","kind":"semaphore","available":3,"taken":2,"ttl_ms":null}`,
		program.Finish(t, s.URL(), "list", "--json", "pool").Stdout)
	require.Equal(t, []string{"orders", "pool"}, listedNames(t, s, "--sort", "name"))
	require.Equal(t, []string{"orders"}, listedNames(t, s, "--kind", "plain"))
	require.Equal(t, []string{"pool"}, listedNames(t, s, "--kind", "semaphore"))
	require.Equal(t, []string{"visits"}, listedNames(t, s, "--kind", "counter"))
	require.Empty(t, listedNames(t, s, "--no-ttl", "pool"), "it is no lock that is held")
	got = program.Finish(t, s.URL(), "list", "--kind", "latch")
	require.Equal(t, program.Outcome{Code: 0, Stderr: "redlatch: no numbers here of kind latch\n"}, got)
	got = program.Finish(t, s.URL(), "list", "--kind", "counter")
	require.Regexp(t, `(?m)^visits +count  41 +- +- +-$`, got.Stdout)
}
