package rlatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlatch"
)

// unreachable closes the connections, and refuses new ones until Heal.
func unreachable(s *redistest.MiniServer) {
	s.FailWith("LOADING Redis is loading the dataset in memory")
	s.DropConnections()
	synctest.Wait()
}

func TestCountDownWithLostReplyIsNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *rlatch.Latch) {
		t.Helper()
		l := open()
		set(t, l, 6)
		countDown(t, l) // the server knows the script
		s.LoseReplies(1)
		require.ErrorIs(t, l.CountDown(t.Context()), redlatch.ErrUncertain)
		time.Sleep(time.Minute)
		require.EqualValues(t, 4, count(t, open()), "it has run, once")
		require.EqualValues(t, 4, count(t, l))
	})
}

func TestUnsentCountDownIsSentOnce(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *rlatch.Latch) {
		t.Helper()
		l := open()
		set(t, l, 5)
		unreachable(s)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.CountDown(ctx), redlatch.ErrNotSent)
		require.ErrorIs(t, l.Wait(t.Context()), redlatch.ErrNotSent)
		s.Heal()
		countDown(t, l)
		require.EqualValues(t, 4, count(t, open()))
	})
}

// Redisson's waiter keeps sleeping.
func TestReconnectDetectsOpenedLatch(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *rlatch.Latch) {
		t.Helper()
		l := open()
		set(t, l, 1)
		came := await(t.Context(), l)
		s.Do(t, "DEL", "job") // and the message is lost
		time.Sleep(time.Hour)
		require.Empty(t, came)
		s.DropSubscribers()
		opens(t, came)
	})
}

func TestQueryWithLostReplyIsRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *rlatch.Latch) {
		t.Helper()
		l, far := open(), open()
		set(t, l, 1)
		synctest.Wait()
		s.LoseReplies(1)
		came := await(t.Context(), l)
		countDown(t, far)
		opens(t, came)
	})
}

// Neither causes a message.
func TestDeletionAndExpiryEndWaitWithinPollCap(t *testing.T) {
	const pollCap = 4 * time.Second
	for _, away := range [][]any{{"DEL", "job"}, {"PEXPIRE", "job", 1}, {"SET", "job", "-1"}} {
		bubble(t, func(t *testing.T, s *redistest.MiniServer, open func(...redlatch.Option) *rlatch.Latch) {
			t.Helper()
			l := open(redlatch.WithPollCap(pollCap))
			set(t, l, 2)
			came := await(t.Context(), l)
			time.Sleep(5*pollCap/2 + time.Second)
			require.Empty(t, came)
			s.Do(t, away[0].(string), away[1:]...)
			began := time.Now()
			require.NoError(t, <-came)
			require.LessOrEqual(t, time.Since(began), pollCap)
			require.Positive(t, time.Since(began))
		})
	}
}

func TestUnansweredFirstQueryReturnsErrNotSent(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, _ func(...redlatch.Option) *rlatch.Latch) {
		t.Helper()
		tr, client := callers.Stalling(t, s)
		l := rlatch.New(client, "never set")
		for _, timeout := range []time.Duration{100 * time.Millisecond, time.Second, time.Hour} {
			for _, silent := range []func(bool){tr.Stall, tr.Mute} {
				silent(true)
				ctx, cancel := context.WithTimeout(t.Context(), timeout)
				began := time.Now()
				err := l.Wait(ctx)
				require.Equal(t, min(timeout, 3*time.Second), time.Since(began), "the command timeout")
				require.ErrorIs(t, err, redlatch.ErrNotSent)
				require.Equal(t, timeout < time.Hour, errors.Is(err, context.DeadlineExceeded))
				require.NotErrorIs(t, err, redlatch.ErrUncertain)
				require.NotContains(t, err.Error(), redlatch.ErrUncertain.Error())
				require.NotErrorIs(t, err, rlatch.ErrNotOpen, "the latch is open")
				cancel()
				silent(false)
			}
		}
		require.NoError(t, l.Wait(t.Context()))
	})
}

func TestSilentServerDoesNotEndWait(t *testing.T) {
	bubble(t, func(t *testing.T, s *redistest.MiniServer, _ func(...redlatch.Option) *rlatch.Latch) {
		t.Helper()
		tr, client := callers.Stalling(t, s, redlatch.WithPollCap(time.Second))
		l := rlatch.New(client, "job")
		set(t, l, 1)
		came := await(t.Context(), l)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		ends := await(ctx, l)
		tr.Mute(true)
		err := <-ends
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, err, redlatch.ErrNotSent)
		require.Empty(t, came)
		tr.Mute(false)
		countDown(t, l)
		opens(t, came)
	})
}
