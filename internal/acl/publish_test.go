package acl_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/transport"
)

// An operation is a call whose script publishes. It uses the keys k and n of unpublished.
type operation struct {
	channel string // how the name of the channel starts
	call    func(ctx context.Context, c *redlatch.Client) (unlock func() error, err error)
}

// locking returns an operation for a lock's method.
func locking[H interface{ Unlock() error }](
	channel string, method func(c *redlatch.Client) func(context.Context, ...rlock.Option) (H, error),
) operation {
	return operation{channel, func(ctx context.Context, c *redlatch.Client) (func() error, error) {
		h, err := method(c)(ctx)
		if err != nil {
			return nil, err
		}
		return h.Unlock, nil
	}}
}

type plainly = func(context.Context, ...rlock.Option) (*rlock.Hold, error)

// holdable contains the kinds that have holds.
var holdable = map[string]operation{
	"plain":         locking("redisson_lock__channel:{k}", func(c *redlatch.Client) plainly { return rlock.New(c, "k").Lock }),
	"plain TryLock": locking("redisson_lock__channel:{k}", func(c *redlatch.Client) plainly { return rlock.New(c, "k").TryLock }),
	"fair":          locking("redisson_lock__channel:{k}", func(c *redlatch.Client) plainly { return rfairlock.New(c, "k").Lock }),
	"fair TryLock":  locking("redisson_lock__channel:{k}", func(c *redlatch.Client) plainly { return rfairlock.New(c, "k").TryLock }),
	"read":          locking("redisson_rwlock:{k}", func(c *redlatch.Client) plainly { return rreadwritelock.New(c, "k").Read().Lock }),
	"write":         locking("redisson_rwlock:{k}", func(c *redlatch.Client) plainly { return rreadwritelock.New(c, "k").Write().TryLock }),
	"fenced": locking("redisson_lock__channel:{k}", func(c *redlatch.Client) func(context.Context, ...rlock.Option) (*rfencedlock.Hold, error) {
		return rfencedlock.New(c, "k").Lock
	}),
	"multi": locking("redisson_lock__channel:{", func(c *redlatch.Client) func(context.Context, ...rlock.Option) (*rmultilock.Hold, error) {
		return rmultilock.New(c, "a", "b", "k").Lock
	}),
	"permits": {"redisson_sc:{k}", func(ctx context.Context, c *redlatch.Client) (func() error, error) {
		h, err := rsemaphore.NewExpirable(c, "k").Acquire(ctx, 1)
		if err != nil {
			return nil, err
		}
		return h.Release, nil
	}},
}

// publishing returns an operation without a hold.
func publishing(channel string, call func(ctx context.Context, c *redlatch.Client) error) operation {
	return operation{channel, func(ctx context.Context, c *redlatch.Client) (func() error, error) {
		return func() error { return nil }, call(ctx, c)
	}}
}

var countable = map[string]operation{
	"counter": publishing("redisson_sc:{n}", func(ctx context.Context, c *redlatch.Client) error { return rsemaphore.New(c, "n").Acquire(ctx, 1) }),
	"release": publishing("redisson_sc:{n}", func(ctx context.Context, c *redlatch.Client) error { return rsemaphore.New(c, "n").Release(ctx, 1) }),
	"set permits": publishing("redisson_sc:{k}", func(ctx context.Context, c *redlatch.Client) error {
		return rsemaphore.NewExpirable(c, "k").SetPermits(ctx, 2)
	}),
	"set latch": publishing("redisson_countdownlatch__channel__{l}", func(ctx context.Context, c *redlatch.Client) error {
		_, err := rlatch.New(c, "l").TrySetCount(ctx, 1)
		return err
	}),
	"count down": publishing("redisson_countdownlatch__channel__{l}", func(ctx context.Context, c *redlatch.Client) error {
		return rlatch.New(c, "l").CountDown(ctx)
	}),
}

// withoutPublishing maps rules that remove the right to publish to the text of the error.
func (o operation) withoutPublishing() map[string]string {
	return map[string]string{"resetchannels": "the user lacks &" + o.channel, "-publish": "the user lacks +publish: "}
}

// unpublished makes a user with all commands and keys, applies the rules in words, and returns a lazy client for that
// user. kind is the operation that the keys are for.
func unpublished(t *testing.T, s *redistest.Server, kind string, words ...any) *redlatch.Client {
	t.Helper()
	s.Do(t, "FLUSHALL")
	s.Do(t, "SET", "n", 1)
	if kind == "permits" {
		s.Do(t, "SET", "k", 1)
	}
	s.Do(t, "ACL", append([]any{"SETUSER", "app", "reset", "on", ">" + redistest.Password, "+@all", "~*"}, words...)...)
	c, err := redlatch.Open(t.Context(), s.UserURL("app"), redlatch.WithLazyConnect())
	require.NoError(t, err)
	t.Cleanup(func() {
		s.Do(t, "ACL", "SETUSER", "app", "allchannels", "+@all")
		require.NoError(t, c.Close())
	})
	return c
}

// requireRefusal requires an error from the server other than ErrNotNotified.
func requireRefusal(t *testing.T, err error, kind string) {
	t.Helper()
	var refusal *transport.ServerError
	require.ErrorAs(t, err, &refusal, kind)
	require.NotErrorIs(t, err, redlatch.ErrNotNotified, kind)
}

// The first call fails, not the first Unlock, and changes nothing.
func TestUserWithoutChannelsAcquiresNothing(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s *redistest.Server) {
		t.Helper()
		calls := maps.Clone(holdable)
		maps.Copy(calls, countable)
		for kind, o := range calls {
			for word, lacks := range o.withoutPublishing() {
				c := unpublished(t, s, kind, "allchannels", word)
				before := contents(t, s)
				_, err := o.call(callers.Within(t), c)
				require.ErrorContains(t, err, lacks, kind)
				requireRefusal(t, err, kind)
				require.Equal(t, before, contents(t, s), kind)
				s.Do(t, "ACL", "SETUSER", "app", "allchannels", "+publish")
				leave, err := o.call(callers.Within(t), c)
				require.NoError(t, err, "%s: the right was granted", kind)
				require.NoError(t, leave(), kind)
			}
		}
	})
}

// The right to publish is removed while the lock is held.
func TestUnlockWithoutPublishReturnsErrNotNotified(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s *redistest.Server) {
		t.Helper()
		for kind, o := range holdable {
			for word, lacks := range o.withoutPublishing() {
				c := unpublished(t, s, kind, "allchannels")
				leave, err := o.call(callers.Within(t), c)
				require.NoError(t, err)
				if strings.HasPrefix(kind, "fair") { // no waiter, so no message
					(&trial{T: t, server: s}).queuedByHand("k", map[string]time.Duration{foreign: time.Hour}, foreign)
				}
				s.Do(t, "ACL", "SETUSER", "app", word)
				err = leave()
				require.ErrorIs(t, err, redlatch.ErrNotNotified, kind)
				require.ErrorContains(t, err, lacks, kind)
				if kind == "permits" {
					require.EqualValues(t, "1", s.Do(t, "GET", "k"))
				} else {
					require.EqualValues(t, 0, s.Do(t, "EXISTS", "k", "a", "b"), kind)
				}
			}
		}
	})
}

func TestDoJoinsErrNotNotified(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := unpublished(t, s, "plain", "allchannels")
	failed := errors.New("failed")
	err := rlock.New(c, "k").Do(callers.Within(t), func(context.Context) error {
		s.Do(t, "ACL", "SETUSER", "app", "resetchannels")
		return failed
	})
	require.ErrorIs(t, err, failed)
	require.ErrorIs(t, err, redlatch.ErrNotNotified)
}

func TestUserWithoutChannelsAcquiresNothingInCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t, 3, 0)
	for _, s := range cluster.Nodes() {
		s.Do(t, "ACL", "SETUSER", "app", "reset", "on", ">"+redistest.Password, "+@all", "~*")
	}
	c, err := redlatch.Open(callers.Within(t), "redis-cluster://app:"+redistest.Password+"@"+strings.Join(cluster.Addrs(), ","))
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	for kind, o := range holdable {
		if kind == "permits" || kind == "multi" {
			continue
		}
		_, err := o.call(callers.Within(t), c)
		require.ErrorContains(t, err, "the user lacks &"+o.channel, kind)
	}
}

func TestForceUnlockWithoutPublishReturnsErrNotNotified(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s *redistest.Server) {
		t.Helper()
		c := unpublished(t, s, "plain", "resetchannels")
		l := rlock.New(c, "k")
		s.Do(t, "HSET", "k", foreign, 1)
		forced, err := l.ForceUnlock(callers.Within(t))
		require.ErrorIs(t, err, redlatch.ErrNotNotified)
		require.ErrorContains(t, err, "the user lacks &redisson_lock__channel:{k}")
		require.True(t, forced)
		require.EqualValues(t, 0, s.Do(t, "EXISTS", "k"))
	})
}

// The lock is gone before the release.
func TestUnlockWithoutScriptsIsNotErrNotNotified(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s *redistest.Server) {
		t.Helper()
		for kind, o := range holdable {
			leave, err := o.call(callers.Within(t), unpublished(t, s, kind, "allchannels"))
			require.NoError(t, err)
			s.Do(t, "DEL", "k", "a", "b", "{k}:timeout")
			s.Do(t, "ACL", "SETUSER", "app", "-eval", "-evalsha")
			err = leave()
			requireRefusal(t, err, kind)
			require.NotContains(t, err.Error(), "the user lacks", kind)
		}
	})
}

// The server denies DEL, so the lock is still held. Redis before version 7.2 does not name the command.
func TestUnlockWithoutDelIsNotErrNotNotified(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s *redistest.Server) {
		t.Helper()
		c := unpublished(t, s, "plain", "allchannels")
		l := rlock.New(c, "k")
		hold, err := l.Lock(callers.Within(t), rlock.WithLease(lease))
		require.NoError(t, err)
		s.Do(t, "ACL", "SETUSER", "app", "-del")
		requireRefusal(t, hold.Unlock(), "plain")
		forced, err := l.ForceUnlock(callers.Within(t))
		requireRefusal(t, err, "plain")
		require.NotContains(t, err.Error(), "the user lacks")
		require.False(t, forced)
		require.EqualValues(t, 1, s.Do(t, "EXISTS", "k"))
	})
}
