package show

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlatch"
)

func TestStatusShowsACountDownLatch(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	client, err := redlatch.Open(t.Context(), s.URL())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	l := rlatch.New(client, "imports")
	_, err = l.TrySet(t.Context(), 3)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	came := make(chan error, 1)
	go func() { came <- l.Wait(ctx) }()
	require.Eventually(t, func() bool {
		pair, _ := s.Do(t, "PUBSUB", "NUMSUB", codec.CountDownChannel("imports")).([]any)
		return len(pair) == 2 && pair[1] == int64(1)
	}, 30*time.Second, 5*time.Millisecond)

	got := program.Finish(t, s.URL(), "status", "imports")
	require.Equal(t, program.Outcome{Stdout: "\"imports\" is no lock, but a number: 3\n" +
		"  latch  as a count-down latch it is closed: 3 to count down; 1 connection\n         waits for it\n"}, got)
	got = program.Finish(t, s.URL(), "status", "--json", "imports")
	require.Zero(t, got.Code)
	require.Contains(t, got.Stdout, `"available": 3`)
	require.Contains(t, got.Stdout, `"latch_waiters": 1`)
	require.Contains(t, got.Stdout, `"kind": "latch"`)
	cancel()
	<-came

	s.Do(t, "SET", "text", "12 monkeys")
	got = program.Finish(t, s.URL(), "status", "text")
	require.Equal(t, 1, got.Code)
	require.Contains(t, got.Stderr, "holds a string")
	s.Do(t, "SET", "imports", -3)
	require.Contains(t, program.Finish(t, s.URL(), "status", "imports").Stdout, "it is open")
}

func TestStatusShowsASemaphore(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		name := redistest.Key(t)
		s.Do(t, "SET", name, 3)
		got := program.Finish(t, s.URL(), "status", name)
		require.Contains(t, got.Stdout, "is no lock, but a number: 3\n")
		require.Contains(t, got.Stdout, "as a semaphore it has 3 permits available, 0 are taken")
		require.Contains(t, got.Stdout, "as a count-down latch it is closed: 3 to count down")
		s.Do(t, "SET", name, 1)
		s.Do(t, "ZADD", codec.PermitsKey(name), 1, "0123456789abcdef")
		require.Contains(t, program.Finish(t, s.URL(), "status", name).Stdout, "as a semaphore it has 1 permit available, 1 is taken\n")
		s.Do(t, "SET", name, 3)
		s.Do(t, "ZADD", codec.PermitsKey(name), 1, "0123456789abcdef", codec.PermitForever, "fedcba9876543210")
		got = program.Finish(t, s.URL(), "status", name)
		require.Equal(t, program.Outcome{Stdout: fmt.Sprintf("%q is no lock, but a number: 3\n", name) + `  permit as a semaphore it has 3 permits available, 2 are taken
  permit 30313233343536373839616263646566   its lease is over
  permit 66656463626139383736353433323130   never ends
`}, got)
		got = program.Finish(t, s.URL(), "status", "--json", name)
		require.JSONEq(t, `{"name":"`+name+`","kind":"semaphore","available":3,"taken":2,"ttl_ms":null,"permits":[`+
			`{"id":"30313233343536373839616263646566","left_ms":0},{"id":"66656463626139383736353433323130","left_ms":null}]}`, got.Stdout)
		for i := range 25 {
			s.Do(t, "ZADD", codec.PermitsKey(name), codec.PermitForever, "a permit of mine"[:15]+string(rune('a'+i)))
		}
		require.Contains(t, program.Finish(t, s.URL(), "status", name).Stdout, "and 7 more")
		s.Do(t, "PEXPIRE", name, 60_000)
		require.Contains(t, program.Finish(t, s.URL(), "status", name).Stdout, "  lives  ")

		got = program.Finish(t, s.URL(), "status", "--exit-code", name)
		require.Equal(t, 1, got.Code, "it is not held, nor free")
		require.Contains(t, got.Stderr, "is no lock")

		s.Do(t, "SET", name, "seven")
		got = program.Finish(t, s.URL(), "status", name)
		require.Equal(t, 1, got.Code)
		require.Contains(t, got.Stderr, "holds a string, and a lock is a hash")
	})
}
