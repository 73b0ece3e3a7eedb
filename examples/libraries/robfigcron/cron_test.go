package robfigcron_test

import (
	"context"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/examples/libraries/internal/candidates"
	"github.com/redlatch/redlatch/examples/libraries/robfigcron"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestOneProcessRunsTheCron(t *testing.T) {
	t.Parallel()
	candidates.Takes(t, redistest.Start(t), func(did func()) func(context.Context) error {
		return robfigcron.Lead(func(_ context.Context, c *cron.Cron) error {
			_, err := c.AddFunc("* * * * * *", did)
			return err
		}, cron.WithSeconds())
	})
}

func TestJobReturnsBeforeLeadershipEnds(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	end, over := make(chan struct{}), make(chan error, 1)
	lead := robfigcron.Lead(func(ctx context.Context, c *cron.Cron) error {
		_, err := c.AddFunc("* * * * * *", func() {
			stop()
			<-ctx.Done()
			<-end
		})
		return err
	}, cron.WithSeconds())
	go func() { over <- lead(ctx) }()
	<-ctx.Done()
	select {
	case <-over:
		require.FailNow(t, "the leadership ended while a job runs")
	case <-time.After(time.Second):
	}
	close(end)
	require.ErrorIs(t, <-over, context.Canceled)
}

func TestInvalidScheduleEndsLeadership(t *testing.T) {
	t.Parallel()
	require.Error(t, robfigcron.Lead(func(_ context.Context, c *cron.Cron) error {
		_, err := c.AddFunc("never", func() {})
		return err
	})(t.Context()))
}
