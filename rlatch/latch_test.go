package rlatch_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlatch"
)

func TestWaitersOfTwoClientsGoWhenTheCountIsZero(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	here := newLatch(t, s)
	there := same(t, s, here)
	require.NoError(t, here.Wait(within(t)), "a latch that was never set is open")

	set(t, here, 3)
	again, err := there.TrySet(within(t), 5)
	require.NoError(t, err)
	require.False(t, again)
	require.EqualValues(t, 3, count(t, there))

	var came []<-chan error
	for range 5 {
		came = append(came, await(within(t), here), await(within(t), there))
	}
	listening(t, s, here, 2)
	countDown(t, here)
	countDown(t, there)
	for _, c := range came {
		require.Empty(t, c)
	}
	countDown(t, here)
	for _, c := range came {
		opens(t, c)
	}
	require.Zero(t, count(t, here))
	countDown(t, here) // which is below 0 by now, and stays open
	require.Zero(t, s.Do(t, "EXISTS", here.Name()))
	require.NoError(t, there.Wait(within(t)))
	listening(t, s, here, 0)
}

func TestManyCountDownsOpenTheLatchOnce(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	l := newLatch(t, s)
	const workers, each = 8, 25
	set(t, l, workers*each)
	came := await(within(t), same(t, s, l))
	var all sync.WaitGroup
	for range workers {
		mine := same(t, s, l)
		all.Go(func() {
			for range each {
				countDown(t, mine)
			}
		})
	}
	opens(t, came)
	all.Wait()
	require.Zero(t, count(t, l))
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	l := newLatch(t, s)
	set(t, l, 1)
	ctx, cancel := context.WithCancel(t.Context())
	came := await(ctx, l)
	listening(t, s, l, 1)
	cancel()
	err := <-came
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, rlatch.ErrNotOpen)
	require.NotErrorIs(t, err, redlatch.ErrNotAcquired)
	listening(t, s, l, 0)

	ctx, cancel = context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, l.Wait(ctx), context.DeadlineExceeded)
	require.ErrorIs(t, l.Wait(ctx), redlatch.ErrNotSent, "it had ended before")
	require.EqualValues(t, 1, count(t, l), "a waiter that leaves changes nothing")
}

func TestAWaitEndsWithTheClient(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	client, err := redlatch.Open(t.Context(), s.URL())
	require.NoError(t, err)
	l := rlatch.New(client, redistest.Key(t))
	set(t, l, 1)
	came := await(within(t), l)
	listening(t, s, l, 1)
	require.NoError(t, client.Close())
	require.ErrorIs(t, <-came, redlatch.ErrClosed)
	require.ErrorIs(t, l.Wait(within(t)), redlatch.ErrClosed)
	require.ErrorIs(t, l.CountDown(within(t)), redlatch.ErrClosed)
}

func TestAsManyWaitAsMay(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	l := newLatch(t, s, redlatch.WithMaxWaiters(1))
	set(t, l, 1)
	came := await(within(t), l)
	listening(t, s, l, 1)
	require.ErrorIs(t, l.Wait(within(t)), rlatch.ErrNotOpen)
	countDown(t, l)
	opens(t, came)
}

func TestADeletedLatchIsOpen(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	l := newLatch(t, s)
	set(t, l, 2)
	came := await(within(t), l)
	listening(t, s, l, 1)
	was, err := same(t, s, l).Delete(within(t))
	require.NoError(t, err)
	require.True(t, was)
	opens(t, came)
	was, err = l.Delete(within(t))
	require.NoError(t, err)
	require.False(t, was)
	set(t, l, 1)
	countDown(t, l)
}

// Redisson's waiters spin after such a message.
func TestAFalseMessageCostsOneQuestion(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	l := newLatch(t, s)
	set(t, l, 1)
	came := await(within(t), l)
	listening(t, s, l, 1)
	const messages = 20
	for range messages {
		s.Do(t, "PUBLISH", codec.CountDownChannel(l.Name()), codec.MessageOpened)
	}
	asked := func() int64 { return s.CommandStats(t)["get"] }
	time.Sleep(200 * time.Millisecond)                 // in which a waiter that spins asks hundreds of times
	require.LessOrEqual(t, asked(), int64(3+messages)) // the script that sets sends 1, the wait 2
	require.Empty(t, came)
	countDown(t, l)
	opens(t, came)
}

func TestKeysThatAreNoLatchAreErrorsAndStay(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	l := newLatch(t, s)
	for what, command := range map[string][]any{
		"hash": {"HSET", l.Name(), "a", "1"}, "text": {"SET", l.Name(), "text"},
		"fraction": {"SET", l.Name(), "1.5"},
	} {
		args := command[1:]
		s.Do(t, "DEL", l.Name())
		s.Do(t, command[0].(string), args...)
		before := s.Do(t, "DUMP", l.Name())
		_, err := l.Count(within(t))
		require.ErrorIs(t, err, redlatch.ErrWrongType, what)
		require.ErrorIs(t, l.Wait(within(t)), redlatch.ErrWrongType, what)
		require.ErrorIs(t, l.CountDown(within(t)), redlatch.ErrWrongType, what)
		_, err = l.Delete(within(t))
		require.ErrorIs(t, err, redlatch.ErrWrongType, what)
		if was, err := l.TrySet(within(t), 1); err != nil {
			require.ErrorIs(t, err, redlatch.ErrWrongType, what)
		} else {
			require.False(t, was, what)
		}
		require.Equal(t, before, s.Do(t, "DUMP", l.Name()), what)
	}
}

func TestCountsThatAreNoneAreRefused(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	l := newLatch(t, s)
	for _, n := range []int64{0, -1, -1 << 63} {
		_, err := l.TrySet(within(t), n)
		require.ErrorIs(t, err, redlatch.ErrInvalid)
	}
	require.Zero(t, s.Do(t, "EXISTS", l.Name()))
	empty := rlatch.New(connect(t, s.URL()), "")
	require.ErrorIs(t, empty.Wait(within(t)), redlatch.ErrInvalid)
	require.ErrorIs(t, empty.CountDown(within(t)), redlatch.ErrInvalid)
	set(t, l, 1<<62)
	countDown(t, l)
	require.EqualValues(t, 1<<62-1, count(t, l))
	for _, theirs := range []string{"0", "-3"} { // Redisson stores them
		s.Do(t, "SET", l.Name(), theirs)
		require.NoError(t, l.Wait(within(t)))
		require.Zero(t, count(t, l))
	}
}
