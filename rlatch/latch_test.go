package rlatch_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlatch"
)

func TestZeroCountReleasesAllWaiters(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *rlatch.Latch) {
		t.Helper()
		here, there := open(), open()
		require.NoError(t, here.Wait(t.Context()), "a latch that was never set is open")

		set(t, here, 3)
		again, err := there.TrySetCount(t.Context(), 5)
		require.NoError(t, err)
		require.False(t, again)
		require.EqualValues(t, 3, count(t, there))

		var came []<-chan error
		for range 5 {
			came = append(came, await(t.Context(), here), await(t.Context(), there))
		}
		listening(t, s, 2)
		countDown(t, here)
		countDown(t, there)
		time.Sleep(time.Second)
		for _, c := range came {
			require.Empty(t, c)
		}
		countDown(t, here)
		for _, c := range came {
			opens(t, c)
		}
		require.Zero(t, count(t, here))
		countDown(t, here) // below 0, the latch stays open
		require.Zero(t, s.Do(t, "EXISTS", "job"))
		require.NoError(t, there.Wait(t.Context()))
		listening(t, s, 0)
	})
}

func TestConcurrentCountDownsOpenLatchOnce(t *testing.T) {
	bubble(t, func(t *testing.T, _ *redistest.MiniServer, open func(...redlatch.Option) *rlatch.Latch) {
		t.Helper()
		l := open()
		const workers, each = 8, 25
		set(t, l, workers*each)
		came := await(t.Context(), open())
		var all sync.WaitGroup
		for range workers {
			mine := open()
			all.Go(func() {
				for range each {
					countDown(t, mine)
				}
			})
		}
		opens(t, came)
		all.Wait()
		require.Zero(t, count(t, l))
	})
}

func TestWaitEndsOnCancel(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *rlatch.Latch) {
		t.Helper()
		l := open()
		set(t, l, 1)
		ctx, cancel := context.WithCancel(t.Context())
		came := await(ctx, l)
		cancel()
		err := <-came
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, err, rlatch.ErrNotOpen)
		require.NotErrorIs(t, err, redlatch.ErrNotAcquired)
		listening(t, s, 0)

		ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, l.Wait(ctx), context.DeadlineExceeded)
		require.ErrorIs(t, l.Wait(ctx), redlatch.ErrNotSent, "the context had already ended")
		require.EqualValues(t, 1, count(t, l), "a canceled waiter changes nothing")
	})
}

func TestWaitEndsOnClose(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, _ func(...redlatch.Option) *rlatch.Latch) {
		t.Helper()
		client := callers.InProcess(t, s)
		l := rlatch.New(client, "job")
		set(t, l, 1)
		came := await(t.Context(), l)
		require.NoError(t, client.Close())
		require.ErrorIs(t, <-came, redlatch.ErrClosed)
		require.ErrorIs(t, l.Wait(t.Context()), redlatch.ErrClosed)
		require.ErrorIs(t, l.CountDown(t.Context()), redlatch.ErrClosed)
	})
}

func TestMaxWaitersLimitsWaits(t *testing.T) {
	bubble(t, func(t *testing.T, _ *redistest.MiniServer, open func(...redlatch.Option) *rlatch.Latch) {
		t.Helper()
		l := open(redlatch.WithMaxWaiters(1))
		set(t, l, 1)
		came := await(t.Context(), l)
		require.ErrorIs(t, l.Wait(t.Context()), rlatch.ErrNotOpen)
		countDown(t, l)
		opens(t, came)
	})
}

func TestDeletedLatchIsOpen(t *testing.T) {
	bubble(t, func(t *testing.T, _ *redistest.MiniServer, open func(...redlatch.Option) *rlatch.Latch) {
		t.Helper()
		l := open()
		set(t, l, 2)
		came := await(t.Context(), l)
		for i, latch := range []*rlatch.Latch{open(), l} {
			was, err := latch.Delete(t.Context())
			require.NoError(t, err)
			require.Equal(t, i == 0, was)
		}
		opens(t, came)
		set(t, l, 1)
		countDown(t, l)
	})
}

// Redisson's waiters spin after such a message.
func TestFalseMessageCausesOneQuery(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *rlatch.Latch) {
		t.Helper()
		tr, client := callers.Stalling(t, s, redlatch.WithPollCap(24*time.Hour))
		set(t, open(), 1)
		came := await(t.Context(), rlatch.New(client, "job"))
		before := tr.Started()
		const messages = 20
		for range messages {
			s.Do(t, "PUBLISH", protocol.CountDownChannel("job"), protocol.MessageOpened)
		}
		time.Sleep(time.Minute)
		require.LessOrEqual(t, tr.Started()-before, int64(messages))
		require.Empty(t, came)
		countDown(t, open())
		opens(t, came)
	})
}

func TestNonLatchKeysRejectedAndKept(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	l := rlatch.New(callers.Connect(t, s.URL()), redistest.Key(t))
	for what, command := range map[string][]any{
		"hash": {"HSET", l.Name(), "a", "1"}, "text": {"SET", l.Name(), "text"},
		"fraction": {"SET", l.Name(), "1.5"},
	} {
		args := command[1:]
		s.Do(t, "DEL", l.Name())
		s.Do(t, command[0].(string), args...)
		before := s.Do(t, "DUMP", l.Name())
		_, err := l.Count(t.Context())
		require.ErrorIs(t, err, redlatch.ErrWrongType, what)
		require.ErrorIs(t, l.Wait(t.Context()), redlatch.ErrWrongType, what)
		require.ErrorIs(t, l.CountDown(t.Context()), redlatch.ErrWrongType, what)
		_, err = l.Delete(t.Context())
		require.ErrorIs(t, err, redlatch.ErrWrongType, what)
		if was, err := l.TrySetCount(t.Context(), 1); err != nil {
			require.ErrorIs(t, err, redlatch.ErrWrongType, what)
		} else {
			require.False(t, was, what)
		}
		require.Equal(t, before, s.Do(t, "DUMP", l.Name()), what)
	}
}

func TestTrySetRejectsInvalidCount(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *rlatch.Latch) {
		t.Helper()
		l := open()
		for _, n := range []int64{0, -1, -1 << 63} {
			_, err := l.TrySetCount(t.Context(), n)
			require.ErrorIs(t, err, redlatch.ErrInvalid)
			require.ErrorContains(t, err, "try-set")
		}
		require.Zero(t, s.Do(t, "EXISTS", "job"))
		empty := rlatch.New(callers.InProcess(t, s), "")
		require.ErrorIs(t, empty.Wait(t.Context()), redlatch.ErrInvalid)
		require.ErrorIs(t, empty.CountDown(t.Context()), redlatch.ErrInvalid)
		set(t, l, 1<<62)
		countDown(t, l)
		require.EqualValues(t, 1<<62-1, count(t, l))
		for _, theirs := range []string{"0", "-3"} { // Redisson stores them
			s.Do(t, "SET", "job", theirs)
			require.NoError(t, l.Wait(t.Context()))
			require.Zero(t, count(t, l))
		}
	})
}
