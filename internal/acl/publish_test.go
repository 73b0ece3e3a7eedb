package acl_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
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

// taking acquires something and returns a function that releases it.
type taking func(ctx context.Context, c *redlatch.Client) (leave func() error, err error)

// locking returns a taking for the method of a lock.
func locking[H interface{ Unlock() error }](call func(c *redlatch.Client) func(context.Context, ...rlock.Option) (H, error)) taking {
	return func(ctx context.Context, c *redlatch.Client) (func() error, error) {
		h, err := call(c)(ctx)
		if err != nil {
			return nil, err
		}
		return h.Unlock, nil
	}
}

type plainly = func(context.Context, ...rlock.Option) (*rlock.Hold, error)

// holdable are the kinds with holds, and how the names of their channels begin.
var holdable = map[string]struct {
	channel string
	take    taking
}{
	"plain":         {"redisson_lock__channel:{k}", locking(func(c *redlatch.Client) plainly { return rlock.New(c, "k").Lock })},
	"plain TryLock": {"redisson_lock__channel:{k}", locking(func(c *redlatch.Client) plainly { return rlock.New(c, "k").TryLock })},
	"fair":          {"redisson_lock__channel:{k}", locking(func(c *redlatch.Client) plainly { return rfairlock.New(c, "k").Lock })},
	"fair TryLock":  {"redisson_lock__channel:{k}", locking(func(c *redlatch.Client) plainly { return rfairlock.New(c, "k").TryLock })},
	"fenced": {"redisson_lock__channel:{k}", locking(func(c *redlatch.Client) func(context.Context, ...rlock.Option) (*rfencedlock.Hold, error) {
		return rfencedlock.New(c, "k").Lock
	})},
	"read":  {"redisson_rwlock:{k}", locking(func(c *redlatch.Client) plainly { return rreadwritelock.New(c, "k").Read().Lock })},
	"write": {"redisson_rwlock:{k}", locking(func(c *redlatch.Client) plainly { return rreadwritelock.New(c, "k").Write().TryLock })},
	"multi": {"redisson_lock__channel:{", locking(func(c *redlatch.Client) func(context.Context, ...rlock.Option) (*rmultilock.Hold, error) {
		return rmultilock.New(c, "a", "b", "k").Lock
	})},
	"permits": {"redisson_sc:{k}", func(ctx context.Context, c *redlatch.Client) (func() error, error) {
		h, err := rsemaphore.NewExpirable(c, "k").Acquire(ctx, 1)
		if err != nil {
			return nil, err
		}
		return h.Release, nil
	}},
}

// countable are the other calls whose scripts publish.
var countable = map[string]struct {
	channel string
	call    func(ctx context.Context, c *redlatch.Client) error
}{
	"counter": {"redisson_sc:{n}", func(ctx context.Context, c *redlatch.Client) error { return rsemaphore.New(c, "n").Acquire(ctx, 1) }},
	"release": {"redisson_sc:{n}", func(ctx context.Context, c *redlatch.Client) error { return rsemaphore.New(c, "n").Release(ctx, 1) }},
	"set permits": {"redisson_sc:{k}", func(ctx context.Context, c *redlatch.Client) error {
		return rsemaphore.NewExpirable(c, "k").SetPermits(ctx, 2)
	}},
	"set latch": {"redisson_countdownlatch__channel__{l}", func(ctx context.Context, c *redlatch.Client) error {
		_, err := rlatch.New(c, "l").TrySet(ctx, 1)
		return err
	}},
	"count down": {"redisson_countdownlatch__channel__{l}", func(ctx context.Context, c *redlatch.Client) error {
		return rlatch.New(c, "l").CountDown(ctx)
	}},
}

// unpublished makes a user with all commands and keys, applies words to it, and returns a lazy client
// of that user.
func unpublished(t *testing.T, s *redistest.Server, words ...any) *redlatch.Client {
	t.Helper()
	s.Do(t, "FLUSHALL")
	s.Do(t, "SET", "n", 1)
	user := append([]any{"SETUSER", "app", "reset", "on", ">" + redistest.Password, "+@all", "~*"}, words...)
	s.Do(t, "ACL", user...)
	c, err := redlatch.Open(t.Context(), s.UserURL("app"), redlatch.WithLazyConnect())
	require.NoError(t, err)
	t.Cleanup(func() {
		s.Do(t, "ACL", "SETUSER", "app", "allchannels", "+@all")
		require.NoError(t, c.Close())
	})
	return c
}

// bound ends a test that waits.
func bound(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	t.Cleanup(cancel)
	return ctx
}

// The first call fails, not the first Unlock, and changes nothing.
func TestUserWithoutChannelsAcquiresNothing(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s *redistest.Server) {
		t.Helper()
		calls := map[string]struct {
			channel string
			call    func(ctx context.Context, c *redlatch.Client) error
		}{}
		for kind, k := range holdable {
			calls[kind] = struct {
				channel string
				call    func(ctx context.Context, c *redlatch.Client) error
			}{k.channel, func(ctx context.Context, c *redlatch.Client) error {
				leave, err := k.take(ctx, c)
				if err == nil {
					err = leave()
				}
				return err
			}}
		}
		for kind, k := range countable {
			calls[kind] = k
		}
		for kind, k := range calls {
			for word, lacks := range map[string]string{"resetchannels": "the user lacks &" + k.channel, "-publish": "the user lacks +publish: "} {
				c := unpublished(t, s, "allchannels", word)
				if kind == "permits" {
					s.Do(t, "SET", "k", 1)
				}
				before := contents(t, s)
				err := k.call(bound(t), c)
				require.ErrorContains(t, err, lacks, kind)
				var refusal *transport.ServerError
				require.ErrorAs(t, err, &refusal, kind)
				require.NotErrorIs(t, err, redlatch.ErrNotNotified, kind)
				require.Equal(t, before, contents(t, s), kind)
				s.Do(t, "ACL", "SETUSER", "app", "allchannels", "+publish")
				require.NoError(t, k.call(bound(t), c), "%s: the right was given", kind)
			}
		}
	})
}

// The right to publish is removed while the lock is held.
func TestUnlockWithoutPublishReturnsErrNotNotified(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s *redistest.Server) {
		t.Helper()
		for kind, k := range holdable {
			for word, lacks := range map[string]string{"resetchannels": "the user lacks &" + k.channel, "-publish": "the user lacks +publish: "} {
				c := unpublished(t, s, "allchannels")
				s.Do(t, "SET", "permits", 1)
				if kind == "permits" {
					s.Do(t, "SET", "k", 1)
				}
				leave, err := k.take(bound(t), c)
				require.NoError(t, err)
				waits := kind == "fair" || kind == "fair TryLock" // else nothing is published
				if waits {
					queue(t, s, "k")
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

// queue adds another owner to the queue of a fair lock.
func queue(t *testing.T, s *redistest.Server, name string) {
	t.Helper()
	s.Do(t, "RPUSH", "redisson_lock_queue:{"+name+"}", foreign)
	s.Do(t, "ZADD", "redisson_lock_timeout:{"+name+"}", time.Now().Add(time.Hour).UnixMilli(), foreign)
}

// The server refuses DEL, so the lock is still held.
func TestFailedUnlockIsNotErrNotNotified(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s *redistest.Server) {
		t.Helper()
		c := unpublished(t, s, "allchannels")
		hold, err := rlock.New(c, "k").Lock(bound(t), rlock.WithLease(lease))
		require.NoError(t, err)
		s.Do(t, "ACL", "SETUSER", "app", "-del")
		err = hold.Unlock()
		var refusal *transport.ServerError
		require.ErrorAs(t, err, &refusal)
		require.NotErrorIs(t, err, redlatch.ErrNotNotified)
		require.EqualValues(t, 1, s.Do(t, "EXISTS", "k"))
	})
}

func TestDoJoinsErrNotNotified(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	c := unpublished(t, s, "allchannels")
	failed := errors.New("failed")
	err := rlock.New(c, "k").Do(bound(t), func(context.Context) error {
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
	c, err := redlatch.Open(bound(t), "redis-cluster://app:"+redistest.Password+"@"+strings.Join(cluster.Addrs(), ","))
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	for kind, k := range holdable {
		if kind == "permits" || kind == "multi" {
			continue
		}
		_, err := k.take(bound(t), c)
		require.ErrorContains(t, err, "the user lacks &"+k.channel, kind)
	}
}

func TestForceUnlockWithoutPublishReturnsErrNotNotified(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s *redistest.Server) {
		t.Helper()
		c := unpublished(t, s, "resetchannels")
		l := rlock.New(c, "k")
		s.Do(t, "HSET", "k", foreign, 1)
		forced, err := l.ForceUnlock(bound(t))
		require.ErrorIs(t, err, redlatch.ErrNotNotified)
		require.ErrorContains(t, err, "the user lacks &redisson_lock__channel:{k}")
		require.True(t, forced)
		require.EqualValues(t, 0, s.Do(t, "EXISTS", "k"))
	})
}

// requireOtherRight requires an error about a right that has nothing to do with publishing.
func requireOtherRight(t *testing.T, err error, kind string) {
	t.Helper()
	var refusal *transport.ServerError
	require.ErrorAs(t, err, &refusal, kind)
	require.NotErrorIs(t, err, redlatch.ErrNotNotified, kind)
	require.NotContains(t, err.Error(), "the user lacks", kind)
}

// The lock is gone, and not by this release.
func TestUnlockWithoutScriptsIsNotErrNotNotified(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, s *redistest.Server) {
		t.Helper()
		for kind, k := range holdable {
			c := unpublished(t, s, "allchannels")
			if kind == "permits" {
				s.Do(t, "SET", "k", 1)
			}
			leave, err := k.take(bound(t), c)
			require.NoError(t, err)
			s.Do(t, "DEL", "k", "a", "b", "{k}:timeout")
			s.Do(t, "ACL", "SETUSER", "app", "-eval", "-evalsha")
			requireOtherRight(t, leave(), kind)
		}
	})
}

// Redis before version 7.2 does not name the command that it denied.
func TestForceUnlockWithoutDelIsNotErrNotNotified(t *testing.T) {
	t.Parallel()
	c := unpublished(t, redistest.StartValkey(t), "allchannels", "-del")
	forced, err := rlock.New(c, "k").ForceUnlock(bound(t))
	requireOtherRight(t, err, "plain")
	require.False(t, forced)
}
