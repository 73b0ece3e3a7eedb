package moving_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/redis/rueidis/rueidislock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/examples/libraries/internal/candidates"
	"github.com/redlatch/redlatch/examples/libraries/moving"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// What Redlatch says of a key that another library has, and the library of a key that Redlatch has.
func TestOneKeyIsWrongTypeForRedlatchAndHeldForRedsync(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	orders := rlock.New(candidates.Connect(t, s.URL()), oldName)
	mutex := withRedsync(t, s).NewMutex(oldName)

	require.NoError(t, mutex.Lock())
	assert.Equal(t, "string", s.Do(t, "TYPE", oldName))
	assert.Len(t, mutex.Value(), 24)
	isWrongType(t, orders)
	ok, err := mutex.Unlock()
	require.NoError(t, err)
	assert.True(t, ok)

	hold, err := orders.TryLock(t.Context())
	require.NoError(t, err)
	var taken *redsync.ErrTaken
	require.ErrorAs(t, mutex.TryLock(), &taken)
	ok, err = mutex.Unlock()
	require.Error(t, err, "it would have to say that the lock is not its own")
	assert.False(t, ok)
	ok, err = mutex.Extend()
	require.Error(t, err)
	assert.False(t, ok)
	require.NoError(t, hold.Unlock(), "redsync has changed Redlatch's key")
}

func TestOneKeyIsWrongTypeForRedlatchAndForRedislock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	orders := rlock.New(candidates.Connect(t, s.URL()), oldName)
	locks := redislock.New(goRedis(t, s))

	lock, err := locks.Obtain(t.Context(), oldName, time.Minute, &redislock.Options{Metadata: "host-1"})
	require.NoError(t, err)
	assert.Equal(t, []byte(lock.Token()+"host-1"), s.Do(t, "GET", oldName))
	isWrongType(t, orders)
	require.NoError(t, lock.Release(t.Context()))

	hold, err := orders.TryLock(t.Context())
	require.NoError(t, err)
	_, err = locks.Obtain(t.Context(), oldName, time.Minute, nil)
	require.ErrorContains(t, err, "WRONGTYPE")
	require.NotErrorIs(t, err, redislock.ErrNotObtained)
	require.NoError(t, hold.Unlock(), "redislock has changed Redlatch's key")
}

// isWrongType holds that Lock does not wait for an owner that is none.
func isWrongType(t *testing.T, lock *rlock.Lock) {
	t.Helper()
	_, err := lock.TryLock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrWrongType)
	_, err = lock.Lock(t.Context())
	require.ErrorIs(t, err, redlatch.ErrWrongType)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err = moving.OneName(ctx, lock)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// A hold whose lease has run out and whose key another library has taken is lost.
func TestAKeyThatRedsyncHasTakenIsALostLock(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	hold, err := rlock.New(candidates.Connect(t, s.URL()), oldName).Lock(t.Context())
	require.NoError(t, err)
	s.Do(t, "DEL", oldName)
	require.NoError(t, withRedsync(t, s).NewMutex(oldName).Lock())
	<-hold.Context(t.Context()).Done()
	require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	assert.Equal(t, "string", s.Do(t, "TYPE", oldName), "Redlatch has freed redsync's lock")
}

// A majority of several servers is not one of them.
func TestAServerOfSeveralDoesNotExcludeRedsync(t *testing.T) {
	t.Parallel()
	servers := []*redistest.Server{redistest.Start(t), redistest.Start(t), redistest.Start(t)}
	hold, err := rlock.New(candidates.Connect(t, servers[0].URL()), oldName).TryLock(t.Context())
	require.NoError(t, err)
	mutex := withRedsync(t, servers...).NewMutex(oldName)
	require.NoError(t, mutex.Lock(), "two of three are a majority")
	_, err = mutex.Unlock()
	require.NoError(t, err)
	require.NoError(t, hold.Unlock())
}

func TestALockOfRedsyncSurvivesTheLossOfAServer(t *testing.T) {
	t.Parallel()
	servers := []*redistest.Server{redistest.Start(t), redistest.Start(t), redistest.Start(t)}
	mutex := withRedsync(t, servers...).NewMutex(oldName)
	require.NoError(t, mutex.Lock())
	servers[2].Kill()
	require.Error(t, withRedsync(t, servers...).NewMutex(oldName).TryLock(), "two are inside")
	ok, err := mutex.Extend()
	require.NoError(t, err)
	require.True(t, ok)
}

func TestAContextThatEndsIsErrFailedInRedsync(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	require.NoError(t, withRedsync(t, s).NewMutex(oldName).Lock())
	ctx, cancel := context.WithCancel(t.Context())
	defer time.AfterFunc(time.Second, cancel).Stop()
	err := withRedsync(t, s).NewMutex(oldName, redsync.WithTries(1000)).LockContext(ctx)
	require.ErrorIs(t, err, redsync.ErrFailed)
	require.NotErrorIs(t, err, context.Canceled)
}

func TestWithoutADeadlineRedislockWaitsForOneLease(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	locks := redislock.New(goRedis(t, s))
	_, err := locks.Obtain(t.Context(), oldName, time.Minute, nil)
	require.NoError(t, err)
	begin := time.Now()
	_, err = locks.Obtain(t.Context(), oldName, 2*time.Second, &redislock.Options{
		RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond),
	})
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.GreaterOrEqual(t, time.Since(begin), time.Second)
}

// A token that two callers give is one owner, which does not count how often it entered.
func TestOneTokenOfRedislockEntersTwiceAndReleasesOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	locks, token := redislock.New(goRedis(t, s)), &redislock.Options{Token: "worker-1"}
	_, err := locks.Obtain(t.Context(), oldName, time.Minute, token)
	require.NoError(t, err)
	again, err := locks.Obtain(t.Context(), oldName, time.Minute, token)
	require.NoError(t, err)
	require.NoError(t, again.Release(t.Context()))
	assert.EqualValues(t, 0, s.Do(t, "EXISTS", oldName))
}

// Three keys of one server are the majority's by default, and a hold ends with the context of the call.
func TestRueidislockTakesThreeKeysAndHoldsWithTheContextOfTheCall(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	locker := withRueidislock(t, s)
	call, cancel := context.WithCancel(t.Context())
	defer cancel()
	ctx, unlock, err := locker.WithContext(call, oldName)
	require.NoError(t, err)
	defer unlock()
	keys := []any{"rueidislock:0:" + oldName, "rueidislock:1:" + oldName, "rueidislock:2:" + oldName}
	require.Eventually(t, func() bool { return s.Do(t, "EXISTS", keys...) == int64(3) }, time.Minute, time.Millisecond)
	assert.Equal(t, "string", s.Do(t, "TYPE", keys[0]))

	cancel()
	require.ErrorIs(t, ctx.Err(), context.Canceled)
	require.Eventually(t, func() bool { return s.Do(t, "EXISTS", keys...) == int64(0) }, time.Minute, time.Millisecond)
}

func TestRueidislockSaysOfALossThatTheContextWasCanceled(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	locker := withRueidislock(t, s)
	ctx, unlock, err := locker.WithContext(t.Context(), oldName)
	require.NoError(t, err)
	defer unlock()
	require.Eventually(t, func() bool { return s.Do(t, "EXISTS", "rueidislock:2:"+oldName) == int64(1) }, time.Minute, time.Millisecond)
	s.Do(t, "DEL", "rueidislock:0:"+oldName, "rueidislock:1:"+oldName)
	<-ctx.Done()
	require.Equal(t, context.Canceled, context.Cause(ctx))
}

// Force of rueidislock takes the keys, and the former holder's context ends.
func TestForceOfRueidislockEndsTheHolder(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	former, unlock, err := withRueidislock(t, s).WithContext(t.Context(), oldName)
	require.NoError(t, err)
	defer unlock()
	_, cancel, err := withRueidislock(t, s).ForceWithContext(t.Context(), oldName)
	require.NoError(t, err)
	defer cancel()
	<-former.Done()
	_, _, err = withRueidislock(t, s).TryWithContext(t.Context(), oldName)
	require.ErrorIs(t, err, rueidislock.ErrNotLocked)
}

// What the programs of the page return.
func TestProgramsWithRedlatchSayWhetherTheyWorked(t *testing.T) {
	t.Parallel()
	client := candidates.Connect(t, redistest.Start(t).URL())
	failed := errors.New("the work has failed")
	for name, instead := range map[string]func(context.Context, *redlatch.Client, string, moving.Work) (bool, error){
		"redsync": moving.InsteadOfRedsync, "redislock": moving.InsteadOfRedislock,
	} {
		for result, want := range map[error]bool{nil: true, failed: false} {
			done, err := instead(t.Context(), client, name, func(context.Context) error { return result })
			assert.Equal(t, want, done, name)
			assert.Equal(t, !want, errors.Is(err, failed), name)
		}
		hold, err := rlock.New(client, name).Lock(t.Context())
		require.NoError(t, err)
		done, err := instead(t.Context(), client, name, nil)
		require.NoError(t, err)
		assert.False(t, done, name)
		require.NoError(t, hold.Unlock())
	}
	require.ErrorIs(t, moving.InsteadOfRueidislock(t.Context(), client, oldName,
		func(context.Context) error { return failed }), failed)
}
