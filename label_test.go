package redlatch_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// labelOf returns a client's label on the server, or "" if there is none.
func labelOf(t *testing.T, s redistest.Target, c *redlatch.Client) string {
	t.Helper()
	text, err := redis.String(s.Do(t, "GET", "redlatch:label:"+c.ID().String()), nil)
	if err != nil {
		require.ErrorIs(t, err, redis.ErrNil)
	}
	return text
}

func TestLabelExistsFromFirstLockUntilClose(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		const text = "billing@host-3 pid 812"
		plain, err := redlatch.Open(t.Context(), s.URL(), redlatch.WithLabel(text))
		require.NoError(t, err)
		fair, err := redlatch.Open(t.Context(), s.URL(), redlatch.WithLabel("fair "+text), redlatch.WithNameMapper(redlatch.PrefixMapper("app:")))
		require.NoError(t, err)
		require.Empty(t, labelOf(t, s, plain), "no lock was requested")
		_, err = admin.Inspect(t.Context(), rlock.New(plain, "job"))
		require.NoError(t, err)
		require.Empty(t, labelOf(t, s, plain), "inspecting a lock does not request it")

		hold, err := rlock.New(plain, "job").Lock(t.Context())
		require.NoError(t, err)
		_, err = rfairlock.New(fair, "run").Lock(t.Context())
		require.NoError(t, err)
		for c, want := range map[*redlatch.Client]string{plain: text, fair: "fair " + text} {
			require.Eventually(t, func() bool { return labelOf(t, s, c) == want }, soon, 10*time.Millisecond)
			left, err := redis.Int64(s.Do(t, "PTTL", "redlatch:label:"+c.ID().String()), nil)
			require.NoError(t, err)
			require.Greater(t, left, (9 * time.Minute).Milliseconds())
			require.LessOrEqual(t, left, (10 * time.Minute).Milliseconds())
		}
		require.NoError(t, hold.Unlock())
		require.Equal(t, text, labelOf(t, s, plain), "the label belongs to the client, not the hold")
		require.NoError(t, plain.Close())
		require.NoError(t, fair.Close(), "with a hold that was not unlocked")
		require.Empty(t, labelOf(t, s, plain))
		require.Empty(t, labelOf(t, s, fair))
	})
}

func TestDefaultLabelNamesProcess(t *testing.T) {
	s := redistest.Start(t)
	labelWith := func(opts ...redlatch.Option) string {
		c, err := redlatch.Open(t.Context(), s.URL(), opts...)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, c.Close()) })
		_, err = rlock.New(c, c.ID().String()).Lock(t.Context())
		require.NoError(t, err)
		if len(opts) == 0 {
			require.Eventually(t, func() bool { return labelOf(t, s, c) != "" }, soon, 10*time.Millisecond)
		}
		return labelOf(t, s, c)
	}
	t.Setenv("REDLATCH_LABEL", "")
	require.NoError(t, os.Unsetenv("REDLATCH_LABEL"))
	host, err := os.Hostname()
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%s@%s pid %d", filepath.Base(os.Args[0]), host, os.Getpid()), labelWith())
	require.Empty(t, labelWith(redlatch.WithLabel("")))
}

func TestLabelKeptUntilShutdownCompletes(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c, err := redlatch.Open(t.Context(), s.URL(), redlatch.WithLabel("billing"))
	require.NoError(t, err)
	hold, err := rlock.New(c, "job").Lock(t.Context())
	require.NoError(t, err)
	require.Eventually(t, func() bool { return labelOf(t, s, c) != "" }, soon, 10*time.Millisecond)
	over := make(chan error, 1)
	go func() { over <- c.Shutdown(t.Context()) }()
	require.Eventually(t, func() bool {
		early, err := rlock.New(c, "other").TryLock(t.Context())
		if err == nil {
			require.NoError(t, early.Unlock()) // Shutdown also waits for it
		}
		return err != nil
	}, soon, 10*time.Millisecond)
	require.Equal(t, "billing", labelOf(t, s, c))
	require.NoError(t, hold.Unlock())
	require.NoError(t, <-over)
	require.Empty(t, labelOf(t, s, c))
}
