package gocronredlatch_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/gocronredlatch"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// elect returns a candidate that stops with the test or when stop is called.
func elect(t *testing.T, c *redlatch.Client, config gocronredlatch.ElectorConfig) (e *gocronredlatch.Elector, stop func()) {
	t.Helper()
	config.OnError = func(error) {}
	e, err := gocronredlatch.NewElector(c, config)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(t, e.Run(ctx)) })
	stop = func() { cancel(); running.Wait() }
	t.Cleanup(stop)
	return e, stop
}

func leads(t *testing.T, e *gocronredlatch.Elector) {
	t.Helper()
	require.Eventually(t, func() bool { return e.IsLeader(t.Context()) == nil }, soon, 5*time.Millisecond)
}

// starter returns a scheduler with a job that reports its start to began and its error to failed.
func starter(t *testing.T, e *gocronredlatch.Elector) (began chan context.Context, failed chan error) {
	t.Helper()
	began, failed = make(chan context.Context, 1), make(chan error, 1)
	newScheduler(t, gocron.WithDistributedElector(e), e.Task(func(ctx context.Context) error {
		began <- ctx
		<-ctx.Done()
		return context.Cause(ctx)
	}), fails(failed))
	return began, failed
}

func TestLeaderRunsJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		name := redistest.Key(t)
		first, stop := elect(t, connect(t, s), gocronredlatch.ElectorConfig{Name: name})
		leads(t, first)
		second, _ := elect(t, connect(t, s), gocronredlatch.ElectorConfig{Name: name, Fair: false})
		require.ErrorIs(t, second.IsLeader(t.Context()), gocronredlatch.ErrNotLeader)
		began, failed := starter(t, first)
		ctx := receive(t, began)
		require.NoError(t, ctx.Err())
		// It steps down only after its task has returned.
		stop()
		require.ErrorIs(t, receive(t, failed), context.Canceled)
		require.ErrorIs(t, first.IsLeader(t.Context()), gocronredlatch.ErrNotLeader)
		leads(t, second)
	})
}

func TestLeaderWaitsForTasksBeforeSteppingDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		name := redistest.Key(t)
		client := connect(t, s)
		e, stop := elect(t, client, gocronredlatch.ElectorConfig{Name: name})
		leads(t, e)
		began, end := make(chan context.Context, 1), make(chan struct{})
		newScheduler(t, gocron.WithDistributedElector(e), e.Task(func(ctx context.Context) error {
			began <- ctx
			<-end
			return nil
		}))
		release := sync.OnceFunc(func() { close(end) })
		t.Cleanup(release)
		ctx := receive(t, began)
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		receive(t, ctx.Done())
		select {
		case <-stopped:
			require.FailNow(t, "it stepped down while a task runs")
		case <-time.After(time.Second):
		}
		held, err := rlock.New(client, name).IsLocked(t.Context())
		require.NoError(t, err)
		require.True(t, held)
		release()
		receive(t, stopped)
		held, err = rlock.New(client, name).IsLocked(t.Context())
		require.NoError(t, err)
		require.False(t, held)
	})
}

func TestTaskContextCanceledWithLeadership(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		name := redistest.Key(t)
		client := connect(t, s, redlatch.WithWatchdogTimeout(time.Second))
		e, _ := elect(t, client, gocronredlatch.ElectorConfig{Name: name, Fair: true})
		leads(t, e)
		began, failed := starter(t, e)
		ctx := receive(t, began)
		_, err := rlock.New(client, name).ForceUnlock(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, receive(t, failed), redlatch.ErrLost)
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrLost)
		leads(t, e) // again
	})
}

func TestFrozenServerEndsTasksUntilItThaws(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, client := callers.Stalling(t, redistest.Mini(t, embedded.WithInProcess()), redlatch.WithWatchdogTimeout(10*time.Second))
		e, _ := elect(t, client, gocronredlatch.ElectorConfig{Name: redistest.Key(t)})
		leads(t, e)
		_, failed := starter(t, e)
		synctest.Wait()
		server.Stall(true)
		require.ErrorIs(t, receive(t, failed), redlatch.ErrLost)
		require.ErrorIs(t, e.IsLeader(t.Context()), gocronredlatch.ErrNotLeader)
		time.Sleep(soon) // its attempts fail
		server.Stall(false)
		leads(t, e)
	})
}

func TestNewLeaderWaitsForClockSkew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		name := redistest.Key(t)
		began := time.Now()
		e, _ := elect(t, connect(t, s), gocronredlatch.ElectorConfig{Name: name, Skew: 2 * time.Second})
		require.Eventually(t, func() bool { return s.Do(t, "EXISTS", name) == int64(1) }, soon, time.Millisecond)
		require.ErrorIs(t, e.IsLeader(t.Context()), gocronredlatch.ErrNotLeader)
		leads(t, e)
		require.GreaterOrEqual(t, time.Since(began), 2*time.Second)
	})
}

func TestFollowerSkipsTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, err := gocronredlatch.NewElector(connect(t, redistest.Mini(t, embedded.WithInProcess())), gocronredlatch.ElectorConfig{Name: redistest.Key(t)})
		require.NoError(t, err)
		failed := make(chan error, 1)
		newScheduler(t, gocron.WithLocation(time.UTC), e.Task(func(context.Context) error {
			assert.Fail(t, "the task was called")
			return nil
		}), fails(failed))
		require.ErrorIs(t, receive(t, failed), gocronredlatch.ErrNotLeader)
	})
}
