// Package kinds_test holds that a new kind of lock is one small package: two kinds, made for
// these tests alone, wait, are renewed, are lost, are resolved after a lost reply, and are
// inspected, by what the library gives to every kind. What a server refuses is the same for all kinds.
package kinds_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/test/kinds/sharedlock"
	"github.com/redlatch/redlatch/internal/test/kinds/tokenlock"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon is far more than anything takes that is waited for.
const soon = 30 * time.Second

// watchdog is the lease of holds that are to be renewed, also when the machine stands still
// for two seconds.
const watchdog = 6 * time.Second

// kinds are locks that one holder has at a time.
var kinds = map[string]func(c *redlatch.Client, name string) locker{
	"token": func(c *redlatch.Client, name string) locker { return tokens{tokenlock.New(c, name)} },
	"write": func(c *redlatch.Client, name string) locker { return sharedlock.Writer(c, name) },
}

type locker interface {
	Lock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error)
	TryLock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error)
	Internal() *hold.Lock
}

// tokens is a token lock as a locker.
type tokens struct{ lock *tokenlock.Lock }

func (t tokens) Lock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error) {
	return inner(t.lock.Lock(ctx, opts...))
}

func (t tokens) TryLock(ctx context.Context, opts ...rlock.Option) (*rlock.Hold, error) {
	return inner(t.lock.TryLock(ctx, opts...))
}

func (t tokens) Internal() *hold.Lock { return t.lock.Internal() }

func inner(h *tokenlock.Hold, err error) (*rlock.Hold, error) {
	if err != nil {
		return nil, err
	}
	return h.Hold, nil
}

// each runs a test for each kind, on a server of its own.
func each(t *testing.T, test func(t *testing.T, s *redistest.Server, newLock func(c *redlatch.Client, name string) locker)) {
	t.Helper()
	for name, newLock := range kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, redistest.Start(t), newLock)
		})
	}
}

func open(t *testing.T, url string, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	c, err := redlatch.Open(t.Context(), url, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// locking is a call of Lock on a goroutine of its own.
func locking(t *testing.T, l locker) <-chan error {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		hold, err := l.Lock(t.Context())
		if err == nil {
			err = hold.Unlock()
		}
		ended <- err
	}()
	return ended
}

func awaitNil(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(soon):
		require.FailNow(t, "the call has not ended")
	}
}

// listeners returns how many connections listen to a lock's channel.
func listeners(t *testing.T, s *redistest.Server, name string) int64 {
	t.Helper()
	reply, err := redis.Values(s.Do(t, "PUBSUB", "NUMSUB", codec.LockChannel(name)), nil)
	require.NoError(t, err)
	n, err := redis.Int64(reply[1], nil)
	require.NoError(t, err)
	return n
}

func TestAWaiterIsWokenByTheRelease(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *redistest.Server, newLock func(*redlatch.Client, string) locker) {
		t.Helper()
		name := redistest.Key(t)
		// The poll cap is long: only a message can be in time.
		ours := open(t, s.URL(), redlatch.WithPollCap(time.Minute))
		theirs := open(t, s.URL(), redlatch.WithPollCap(time.Minute))
		for _, waiting := range []*redlatch.Client{theirs, ours} {
			hold, err := newLock(ours, name).TryLock(t.Context())
			require.NoError(t, err)
			_, err = newLock(theirs, name).TryLock(t.Context())
			require.ErrorIs(t, err, redlatch.ErrNotAcquired)
			ended := locking(t, newLock(waiting, name))
			if waiting == theirs {
				require.Eventually(t, func() bool { return listeners(t, s, name) == 1 }, soon, time.Millisecond)
			}
			require.NoError(t, hold.Unlock())
			awaitNil(t, ended)
		}
		require.Zero(t, s.Do(t, "EXISTS", name), "nothing is left")
	})
}

func TestAHoldIsRenewedUntilItIsUnlocked(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *redistest.Server, newLock func(*redlatch.Client, string) locker) {
		t.Helper()
		name := redistest.Key(t)
		hold, err := newLock(open(t, s.URL()), name).Lock(t.Context(), rlock.WithWatchdog(watchdog))
		require.NoError(t, err)
		time.Sleep(watchdog + time.Second)
		require.NoError(t, hold.Err())
		require.EqualValues(t, 1, s.Do(t, "EXISTS", name))
		require.NoError(t, hold.Unlock())
		require.Zero(t, s.Do(t, "EXISTS", name))
	})
}

// They are due at the same time.
func TestHoldsOfTwoKindsAreRenewedByScriptsOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := open(t, s.URL())
	var holds []*rlock.Hold
	for name, newLock := range kinds {
		hold, err := newLock(c, redistest.Key(t)+name).Lock(t.Context(), rlock.WithWatchdog(watchdog))
		require.NoError(t, err)
		holds = append(holds, hold)
	}
	time.Sleep(watchdog + time.Second)
	for _, hold := range holds {
		require.NoError(t, hold.Unlock())
	}
}

func TestAHoldThatTheServerForgotIsLost(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *redistest.Server, newLock func(*redlatch.Client, string) locker) {
		t.Helper()
		name := redistest.Key(t)
		hold, err := newLock(open(t, s.URL()), name).Lock(t.Context(), rlock.WithWatchdog(watchdog))
		require.NoError(t, err)
		ctx := hold.Context(t.Context())
		s.Do(t, "DEL", name)
		select {
		case <-ctx.Done():
		case <-time.After(soon):
			require.FailNow(t, "the loss was not reported")
		}
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrLost)
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	})
}

func TestALockWhoseReplyWasLostIsFreed(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *redistest.Server, newLock func(*redlatch.Client, string) locker) {
		t.Helper()
		name := redistest.Key(t)
		p := redistest.NewProxy(t, s.Addr())
		// No lease ends while the test waits.
		far := newLock(open(t, p.URL(), redlatch.WithCommandTimeout(4*time.Second), redlatch.WithWatchdogTimeout(time.Hour)), name)
		hold, err := far.Lock(t.Context()) // the server knows the scripts then
		require.NoError(t, err)
		require.NoError(t, hold.Unlock())
		p.Blackhole(redistest.ToClient)
		_, err = far.Lock(t.Context())
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		require.EqualValues(t, 1, s.Do(t, "EXISTS", name), "it has the lock, and does not know")
		p.Heal(redistest.ToClient)
		p.Reset()
		require.Eventually(t, func() bool { return s.Do(t, "EXISTS", name) == int64(0) }, soon, 10*time.Millisecond)
	})
}

func TestALockIsInspected(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, s *redistest.Server, newLock func(*redlatch.Client, string) locker) {
		t.Helper()
		l := newLock(open(t, s.URL()), redistest.Key(t))
		in, err := admin.Inspect(t.Context(), l)
		require.NoError(t, err)
		require.Empty(t, in.Holders)
		hold, err := l.Lock(t.Context())
		require.NoError(t, err)
		in, err = admin.Inspect(t.Context(), l)
		require.NoError(t, err)
		require.Len(t, in.Holders, 1)
		require.Equal(t, hold.Internal().Request().Owner, in.Holders[0].Text)
		require.Greater(t, in.TTL, 20*time.Second)
		require.NoError(t, hold.Unlock())
	})
}

func TestTokensGrowWithEachGrant(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	name := redistest.Key(t)
	var tokens []int64
	take := func(ctx context.Context, c *redlatch.Client) *tokenlock.Hold {
		hold, err := tokenlock.New(c, name).Lock(ctx)
		require.NoError(t, err)
		tokens = append(tokens, hold.Token())
		return hold
	}
	one, two := open(t, s.URL()), open(t, s.URL())
	for range 3 {
		require.NoError(t, take(t.Context(), one).Unlock())
		hold := take(t.Context(), two)
		again := take(hold.Context(t.Context()), two)
		require.NoError(t, again.Unlock())
		require.NoError(t, hold.Unlock())
	}
	require.Equal(t, []int64{1, 2, 2, 3, 4, 4, 5, 6, 6}, tokens, "a re-entry has that of its hold")
}

// The lock is transferred inside the process once its callers have counted the other processes.
func TestATransferredLockHasATokenOfItsOwn(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	lock := tokenlock.New(open(t, s.URL()), redistest.Key(t))
	const callers, turns = 8, 200
	seen, failed := make(chan int64, callers*turns), make(chan error, callers*turns)
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range turns {
				hold, err := lock.Lock(t.Context())
				if err == nil {
					seen <- hold.Token()
					err = hold.Unlock()
				}
				failed <- err
			}
		})
	}
	all.Wait()
	close(seen)
	for range callers * turns {
		require.NoError(t, <-failed)
	}
	last := int64(0)
	for token := range seen { // in the order of the holds, which exclude each other
		require.Equal(t, last+1, token)
		last = token
	}
	require.Positive(t, s.CommandStats(t)["hdel"], "none was transferred")
}

func TestReadersAreTogetherAndAWriterIsAlone(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	name := redistest.Key(t)
	c := open(t, s.URL(), redlatch.WithPollCap(time.Minute))
	one, err := sharedlock.Reader(c, name).Lock(t.Context(), rlock.WithWatchdog(watchdog))
	require.NoError(t, err)
	two, err := sharedlock.Reader(c, name).Lock(t.Context(), rlock.WithWatchdog(watchdog))
	require.NoError(t, err)
	in, err := admin.Inspect(t.Context(), sharedlock.Writer(c, name))
	require.NoError(t, err)
	require.Len(t, in.Holders, 2)
	_, err = sharedlock.Writer(c, name).TryLock(one.Context(t.Context()))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired, "there is no re-entry")
	third, err := sharedlock.Reader(c, name).TryLock(one.Context(t.Context()))
	require.NoError(t, err)
	require.NoError(t, third.Unlock())
	ended := locking(t, sharedlock.Writer(c, name))
	time.Sleep(watchdog + time.Second) // both are renewed by one script
	require.NoError(t, errors.Join(one.Err(), two.Err()))
	require.NoError(t, one.Unlock())
	select {
	case err := <-ended:
		require.FailNow(t, "the writer did not wait for both readers", "%v", err)
	case <-time.After(time.Second):
	}
	require.NoError(t, two.Unlock())
	awaitNil(t, ended)
	require.Zero(t, s.Do(t, "EXISTS", name))
}

func TestAnOwnerOfAnotherKindIsRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := open(t, s.URL())
	owner := codec.NewOwner(uuid.New(), 1)
	_, err := sharedlock.Reader(c, redistest.Key(t)).Lock(t.Context(), rlock.WithOwner(owner))
	require.ErrorIs(t, err, redlatch.ErrInvalid)
	_, err = sharedlock.Reader(c, redistest.Key(t)).ForceUnlock(t.Context())
	require.Error(t, err)
	hold, err := sharedlock.Reader(c, redistest.Key(t)).Lock(t.Context())
	require.NoError(t, err)
	_, err = hold.HandOver()
	require.ErrorIs(t, err, redlatch.ErrInvalid)
	require.NoError(t, hold.Err(), "it goes on")
	require.NoError(t, hold.Unlock())
}
