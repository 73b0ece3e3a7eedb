package moving_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredislib "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/examples/libraries/internal/candidates"
	"github.com/redlatch/redlatch/examples/libraries/moving"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

func TestMain(m *testing.M) { redistest.Main(m) }

const (
	oldName = "orders:42"
	newName = "lock:orders:42" // the name in moving.Both
)

// program does work under its locks.
type program func(ctx context.Context, work moving.Work) error

// process starts a process of the fleet with its own connections.
type process func(t *testing.T, s *redistest.Server) program

func goRedis(t *testing.T, s *redistest.Server) *goredislib.Client {
	t.Helper()
	client := goredislib.NewClient(&goredislib.Options{Addr: s.Addr()})
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return client
}

func withRedsync(t *testing.T, servers ...*redistest.Server) *redsync.Redsync {
	t.Helper()
	pools := make([]redis.Pool, len(servers))
	for i, s := range servers {
		pools[i] = goredis.NewPool(goRedis(t, s))
	}
	return redsync.New(pools...)
}

func withRueidislock(t *testing.T, s *redistest.Server) rueidislock.Locker {
	t.Helper()
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{ // 20 ms is short on a busy machine
		ClientOption: rueidis.ClientOption{InitAddress: []string{s.Addr()}}, TryNextAfter: time.Second,
	})
	require.NoError(t, err)
	t.Cleanup(locker.Close)
	return locker
}

func redsyncProcess(t *testing.T, s *redistest.Server) program {
	t.Helper()
	rs := withRedsync(t, s)
	return func(ctx context.Context, work moving.Work) error { return moving.UnderRedsync(ctx, rs, oldName, work) }
}

func redislockProcess(t *testing.T, s *redistest.Server) program {
	t.Helper()
	locks := redislock.New(goRedis(t, s))
	return func(ctx context.Context, work moving.Work) error {
		return moving.UnderRedislock(ctx, locks, oldName, work)
	}
}

func rueidislockProcess(t *testing.T, s *redistest.Server) program {
	t.Helper()
	locker := withRueidislock(t, s)
	return func(ctx context.Context, work moving.Work) error {
		return moving.UnderRueidislock(ctx, locker, oldName, work)
	}
}

// both acquires the lock of an old process inside Redlatch's lock.
func both(old process) process {
	return func(t *testing.T, s *redistest.Server) program {
		t.Helper()
		client, before := candidates.Connect(t, s.URL()), old(t, s)
		return func(ctx context.Context, work moving.Work) error { return moving.Both(ctx, client, before, work) }
	}
}

func redlatchProcess(t *testing.T, s *redistest.Server) program {
	t.Helper()
	orders := rlock.New(candidates.Connect(t, s.URL()), newName)
	return func(ctx context.Context, work moving.Work) error { return orders.Do(ctx, work) }
}

// oneName acquires a Redlatch lock with the old lock's name.
func oneName(t *testing.T, s *redistest.Server) program {
	t.Helper()
	orders := rlock.New(candidates.Connect(t, s.URL()), oldName)
	return func(ctx context.Context, work moving.Work) error {
		hold, err := moving.OneName(ctx, orders)
		if err != nil {
			return err
		}
		return errors.Join(work(hold.Context(ctx)), hold.Unlock())
	}
}

// held reports whether err means that another process has the lock, so that the program retries.
func held(err error) bool {
	var taken *redsync.ErrTaken
	return errors.Is(err, redsync.ErrFailed) || errors.As(err, &taken) || errors.Is(err, redislock.ErrNotObtained) ||
		err != nil && strings.HasPrefix(err.Error(), "WRONGTYPE ") // redislock, while Redlatch has the key
}

const (
	rounds = 15
	inside = 5 * time.Millisecond
)

// fleet runs two processes of each kind against one server until each has worked several times. It returns
// the number of times that two processes worked concurrently.
func fleet(t *testing.T, kinds ...process) (together int32) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s := redistest.Start(t)
	var busy, count atomic.Int32
	var running sync.WaitGroup
	work := func(context.Context) error {
		if busy.Add(1) > 1 {
			count.Add(1)
		}
		<-time.After(inside)
		busy.Add(-1)
		return nil
	}
	for _, kind := range kinds {
		for range 2 {
			run := kind(t, s)
			running.Go(func() {
				for done := 0; done < rounds; {
					err := run(ctx, work)
					if !held(err) {
						if !assert.NoError(t, err) {
							return
						}
						done++
					}
					<-time.After(inside) // lets the other processes try
				}
			})
		}
	}
	running.Wait()
	return count.Load()
}

var libraries = map[string]process{
	"redsync": redsyncProcess, "redislock": redislockProcess, "rueidislock": rueidislockProcess,
}

// The first release takes both locks, the second only Redlatch's.
func TestProgramsTakingBothExcludeOldAndNew(t *testing.T) {
	t.Parallel()
	for name, old := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Zero(t, fleet(t, old, both(old)), "while the first release is deployed")
			assert.Zero(t, fleet(t, both(old), redlatchProcess), "while the second release is deployed")
		})
	}
}

// The second release must not be deployed while the old program runs.
func TestOldAndNewProgramsDoNotExclude(t *testing.T) {
	t.Parallel()
	for name, old := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Positive(t, fleet(t, old, redlatchProcess))
		})
	}
}

// A key cannot be both a string and a hash, so the programs exclude each other if each retries.
func TestSharedKeyExcludesRetryingPrograms(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"redsync", "redislock"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Zero(t, fleet(t, libraries[name], oneName))
		})
	}
}

// Rueidislock prefixes the name.
func TestRueidislockUsesDifferentKey(t *testing.T) {
	t.Parallel()
	assert.Positive(t, fleet(t, rueidislockProcess, oneName))
}

func TestRedsyncKeyIsWrongType(t *testing.T) {
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
	require.Error(t, err, "it should report that it does not own the lock")
	assert.False(t, ok)
	ok, err = mutex.Extend()
	require.Error(t, err)
	assert.False(t, ok)
	require.NoError(t, hold.Unlock(), "redsync has changed Redlatch's key")
}

func TestRedislockKeyIsWrongType(t *testing.T) {
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

// isWrongType requires that Lock fails on another library's key.
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

func TestKeyTakenByRedsyncIsLost(t *testing.T) {
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

func TestOneOfSeveralServersDoesNotExcludeRedsync(t *testing.T) {
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

func TestMigratedProgramsReportResult(t *testing.T) {
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
