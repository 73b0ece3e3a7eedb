package rsemaphore_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rsemaphore"
)

// No release ends the wait for a semaphore that does not exist: the log says so when the wait begins,
// and the error when it ends.
func TestWaitForSemaphoreThatWasNeverSetIsExplained(t *testing.T) {
	const says = "the semaphore was never set or was deleted: call TrySet"
	for kind, of := range map[string]func(c *redlatch.Client) (acquire, try func(ctx context.Context) error, set func() error){
		"permits": func(c *redlatch.Client) (acquire, try func(ctx context.Context) error, set func() error) {
			s := rsemaphore.NewExpirable(c, "job")
			return func(ctx context.Context) error { _, err := s.Acquire(ctx, 1); return err },
				func(ctx context.Context) error { _, err := s.TryAcquire(ctx, 1); return err },
				func() error { return second(s.TrySetPermits(context.Background(), 1)) }
		},
		"counter": func(c *redlatch.Client) (acquire, try func(ctx context.Context) error, set func() error) {
			s := rsemaphore.New(c, "job")
			return func(ctx context.Context) error { return s.Acquire(ctx, 1) },
				func(ctx context.Context) error { return s.TryAcquire(ctx, 1) },
				func() error { return second(s.TrySet(context.Background(), 1, 0)) }
		},
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				log, logger := redistest.NewJournal()
				srv := redistest.Mini(t, embedded.WithInProcess())
				c, err := redlatch.New(srv.Server.Dial, redlatch.WithLogger(logger))
				require.NoError(t, err)
				defer func() { require.NoError(t, c.Close()) }()
				acquire, try, set := of(c)
				require.ErrorContains(t, try(t.Context()), says)
				require.NotContains(t, strings.Join(log.Lines(), ""), says, "no wait begins")

				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				ended := make(chan error, 1)
				go func() { ended <- acquire(ctx) }()
				time.Sleep(30 * time.Second)
				require.Equal(t, 1, strings.Count(strings.Join(log.Lines(), "\n"), says), "once for each wait: %v", log.Lines())
				err = <-ended
				require.ErrorIs(t, err, redlatch.ErrNotAcquired)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, says)

				require.NoError(t, set())
				require.NoError(t, acquire(t.Context()))
				err = try(t.Context())
				require.ErrorIs(t, err, redlatch.ErrNotAcquired)
				require.NotContains(t, err.Error(), "never set", "it is only taken")
			})
		})
	}
}

func second[T any](_ T, err error) error { return err }
