package status_test

import (
	"context"
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
