package asynq_test

import (
	"context"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	latchasynq "github.com/redlatch/redlatch/examples/libraries/asynq"
	"github.com/redlatch/redlatch/examples/libraries/internal/candidates"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

func TestOneProcessEnqueues(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	redis, err := asynq.ParseRedisURI(s.URL())
	require.NoError(t, err)
	candidates.Takes(t, s, func(did func()) func(context.Context) error {
		// The scheduler does not report when it enqueues, so the task does.
		lead := latchasynq.Lead(redis, func(s *asynq.Scheduler) error {
			_, err := s.Register("@every 1s", asynq.NewTask("report", nil), asynq.Queue("reports"))
			return err
		})
		return func(ctx context.Context) error {
			watching, stop := context.WithCancel(ctx)
			watched := make(chan struct{})
			go func() {
				defer close(watched)
				watch(t, watching, redis, did)
			}()
			err := lead(ctx)
			stop()
			<-watched
			return err
		}
	})
}

// watch calls did for each enqueued task, until ctx ends.
func watch(t *testing.T, ctx context.Context, redis asynq.RedisConnOpt, did func()) {
	t.Helper()
	inspector := asynq.NewInspector(redis)
	defer func() { assert.NoError(t, inspector.Close()) }()
	before := -1
	for ctx.Err() == nil {
		<-time.After(20 * time.Millisecond)
		tasks, err := inspector.ListPendingTasks("reports")
		if err != nil {
			continue // no queue yet
		}
		if before >= 0 && len(tasks) > before {
			did()
		}
		before = len(tasks)
	}
}
