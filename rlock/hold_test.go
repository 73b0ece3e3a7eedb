package rlock_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

func TestContextEndsWithTheHoldAndTellsWhy(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(h *rlock.Hold, client *redlatch.Client) error
		cause error
	}{
		"unlocked":       {func(h *rlock.Hold, _ *redlatch.Client) error { return h.Unlock() }, redlatch.ErrNotHeld},
		"left to expire": {func(h *rlock.Hold, _ *redlatch.Client) error { return h.LetExpire() }, redlatch.ErrNotHeld},
		"lost": {func(h *rlock.Hold, client *redlatch.Client) error {
			_, err := rlock.New(client, h.Name()).ForceUnlock(h.Context(context.Background()))
			time.Sleep(11 * time.Second)
			return err
		}, redlatch.ErrLost},
		"closed": {func(_ *rlock.Hold, client *redlatch.Client) error { return client.Close() }, redlatch.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, client := inBubble(t)
				hold := take(t, rlock.New(client, "job"))
				ctx := hold.Context(t.Context())
				child, cancel := context.WithTimeout(context.WithValue(ctx, key{}, 1), time.Hour)
				defer cancel()
				sibling := hold.Context(t.Context())
				require.NoError(t, c.end(hold, client))
				synctest.Wait()
				for _, ctx := range []context.Context{ctx, child, sibling, hold.Context(t.Context())} {
					select {
					case <-ctx.Done():
					default:
						require.Fail(t, "not done")
					}
					require.ErrorIs(t, ctx.Err(), context.Canceled)
					require.ErrorIs(t, context.Cause(ctx), c.cause)
				}
				require.ErrorIs(t, hold.Err(), c.cause)
				require.Zero(t, hold.Remaining())
			})
		})
	}
}

type key struct{}

func TestContextEndsWithItsParentAndTheHoldGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		hold := take(t, rlock.New(client, "job"))
		reason := errors.New("the user went home")
		parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "kept"))
		ctx := hold.Context(parent)
		require.Equal(t, "kept", ctx.Value(key{}))
		cancel(reason)
		<-ctx.Done()
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		require.ErrorIs(t, context.Cause(ctx), reason)

		timed, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		ctx = hold.Context(timed)
		deadline, bounded := ctx.Deadline()
		require.True(t, bounded)
		require.Equal(t, time.Minute, time.Until(deadline))
		<-ctx.Done()
		require.ErrorIs(t, ctx.Err(), context.DeadlineExceeded)
		require.NoError(t, hold.Err())
		require.NoError(t, hold.Unlock())
		require.ErrorIs(t, context.Cause(ctx), context.DeadlineExceeded, "the first cause stays")
	})
}

func TestContextOfAFixedLeaseHasTheEarlierDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		hold := take(t, rlock.New(client, "job"), rlock.WithLease(10*time.Second))
		for _, parent := range []time.Duration{time.Second, time.Minute} {
			outer, cancel := context.WithTimeout(t.Context(), parent)
			deadline, bounded := hold.Context(outer).Deadline()
			require.True(t, bounded)
			require.Equal(t, min(parent, 9*time.Second), time.Until(deadline))
			cancel()
		}
		require.NoError(t, hold.Unlock())
	})
}

func TestChildThatOutlivesTheLeaseEndsWithTheLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		hold := take(t, rlock.New(client, "job"), rlock.WithLease(10*time.Second))
		child, cancel := context.WithTimeout(hold.Context(t.Context()), time.Minute)
		defer cancel()
		began := time.Now()
		<-child.Done()
		require.Equal(t, 9*time.Second, time.Since(began))
		require.ErrorIs(t, context.Cause(child), redlatch.ErrLost)
	})
}

// Not parallel: it counts goroutines.
func TestContextsAndTheirChildrenCostNoGoroutine(t *testing.T) {
	_, client := onShared(t)
	hold := take(t, rlock.New(client, t.Name()))
	before := runtime.NumGoroutine()
	outer, stop := context.WithCancel(t.Context())
	defer stop()
	done := make(chan struct{}, 2000)
	for range 1000 {
		ctx := hold.Context(outer)
		child, cancel := context.WithCancel(ctx)
		defer cancel()
		context.AfterFunc(child, func() { done <- struct{}{} })
		context.AfterFunc(hold.Context(child), func() { done <- struct{}{} })
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
	require.NoError(t, hold.Unlock())
	for range 2000 {
		<-done
	}
}

func TestHundredUnlocksSendOneScriptAndAgree(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	client := connect(t, srv.URL())
	hold := take(t, rlock.New(client, redistest.Key(t)))
	warm := take(t, rlock.New(client, redistest.Key(t)))
	require.NoError(t, warm.Unlock()) // the server knows the scripts
	srv.Do(t, "CONFIG", "RESETSTAT")
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() { assert.NoError(t, hold.Unlock()) })
	}
	wg.Wait()
	require.NoError(t, hold.Unlock())
	stats := srv.CommandStats(t)
	require.EqualValues(t, 1, stats["evalsha"])
	require.EqualValues(t, 1, stats["publish"])
}

func TestUnlockRepeatsItsFirstResult(t *testing.T) {
	t.Parallel()
	srv, client := onShared(t)
	name := redistest.Key(t)
	hold := take(t, rlock.New(client, name))
	srv.Do(t, "DEL", name)
	first := hold.Unlock()
	require.ErrorIs(t, first, redlatch.ErrLost)
	require.Same(t, first, hold.Unlock())
	var le *redlatch.LockError
	require.ErrorAs(t, first, &le)
	require.Equal(t, redlatch.LockError{Op: "unlock", Name: name, Owner: hold.Owner(), Err: redlatch.LossTaken}, *le)
}

func TestUnlockWorksWhenEveryContextHasEnded(t *testing.T) {
	t.Parallel()
	srv, client := onShared(t)
	name := redistest.Key(t)
	ctx, cancel := context.WithCancel(t.Context())
	hold, err := rlock.New(client, name).Lock(ctx)
	require.NoError(t, err)
	cancel()
	require.NoError(t, hold.Err(), "the context bounds the wait, not the hold")
	require.NoError(t, hold.Unlock())
	require.False(t, locked(t, srv, name))
}

func TestLetExpireLeavesTheKeyToItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		for _, opts := range [][]rlock.Option{nil, {rlock.WithLease(30 * time.Second)}} {
			hold := take(t, rlock.New(client, "job"), opts...)
			time.Sleep(time.Second)
			left := ttl(t, srv, "job")
			require.NoError(t, hold.LetExpire())
			require.ErrorIs(t, hold.Err(), redlatch.ErrNotHeld)
			require.ErrorIs(t, hold.LetExpire(), redlatch.ErrNotHeld)
			require.NoError(t, hold.Unlock(), "a deferred Unlock does nothing")
			time.Sleep(left - time.Millisecond)
			require.True(t, locked(t, srv, "job"))
			require.Equal(t, time.Millisecond, ttl(t, srv, "job"), "nothing has renewed it")
			time.Sleep(time.Millisecond)
			require.False(t, locked(t, srv, "job"))
		}
	})
}

func TestLetExpireAfterUnlockOrLossSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, client := inBubble(t)
		hold := take(t, rlock.New(client, "job"))
		require.NoError(t, hold.Unlock())
		err := hold.LetExpire()
		require.ErrorIs(t, err, redlatch.ErrNotHeld)
		require.EqualError(t, err, `let-expire "job": redlatch: lock not held`)
		require.NoError(t, hold.Unlock())

		hold = take(t, rlock.New(client, "job"), rlock.WithLease(time.Second))
		time.Sleep(time.Second)
		require.ErrorIs(t, hold.LetExpire(), redlatch.ErrLost)
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	})
}

func TestHoldKnowsItsNameAndOwner(t *testing.T) {
	t.Parallel()
	srv, client := onShared(t)
	l := rlock.New(client, redistest.Key(t))
	first := take(t, l)
	require.Equal(t, l.Name(), first.Name())
	require.Equal(t, client.ID(), first.Owner().Client())
	require.Equal(t, map[string]string{first.Owner().String(): "1"}, owners(t, srv, l.Name()))
	require.NoError(t, first.Unlock())
	second := take(t, l)
	require.Greater(t, second.Owner().N(), first.Owner().N(), "an owner is used once")
	require.NoError(t, second.Unlock())
}

func TestDoRunsTheFunctionUnderTheLock(t *testing.T) {
	t.Parallel()
	srv, client := onShared(t)
	l := rlock.New(client, redistest.Key(t))
	var inner context.Context
	err := l.Do(t.Context(), func(ctx context.Context) error {
		inner = ctx
		assert.True(t, locked(t, srv, l.Name()))
		return ctx.Err()
	})
	require.NoError(t, err)
	require.False(t, locked(t, srv, l.Name()))
	require.ErrorIs(t, context.Cause(inner), redlatch.ErrNotHeld)
}

func TestDoDoesNotRunTheFunctionWithoutTheLock(t *testing.T) {
	t.Parallel()
	_, client := onShared(t)
	l := rlock.New(client, redistest.Key(t))
	hold := take(t, l)
	err := l.Do(t.Context(), func(context.Context) error {
		assert.Fail(t, "inside")
		return nil
	}, rlock.WithWait(10*time.Millisecond))
	checkHeld(t, err)
	require.NoError(t, hold.Unlock())
}

var errWork = errors.New("out of paper")

func TestDoReturnsTheErrorOfTheFunctionFirst(t *testing.T) {
	t.Parallel()
	srv, client := onShared(t)
	l := rlock.New(client, redistest.Key(t))
	err := l.Do(t.Context(), func(context.Context) error { return errWork })
	require.Equal(t, errWork, err, "and nothing else when there was no loss")
	for _, work := range []error{errWork, nil} {
		err = l.Do(t.Context(), func(context.Context) error {
			srv.Do(t, "DEL", l.Name())
			return work
		})
		require.Equal(t, work != nil, errors.Is(err, errWork))
		require.ErrorIs(t, err, redlatch.ErrLost)
		if work != nil {
			require.Regexp(t, `^out of paper\nunlock "`, err.Error())
		}
	}
}

func TestDoUnlocksOnAPanicWhichGoesOn(t *testing.T) {
	t.Parallel()
	srv, client := onShared(t)
	l := rlock.New(client, redistest.Key(t))
	require.PanicsWithValue(t, "boom", func() {
		_ = l.Do(t.Context(), func(context.Context) error { panic("boom") })
	})
	require.False(t, locked(t, srv, l.Name()))
}
