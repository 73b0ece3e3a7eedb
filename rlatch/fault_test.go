package rlatch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlatch"
)

// behind returns a latch behind a network that can be broken. Its scripts are known.
func behind(t *testing.T) (*redistest.Server, *redistest.Proxy, *rlatch.Latch) {
	t.Helper()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr())
	client := connect(t, p.URL(), redlatch.WithCommandTimeout(time.Second), redlatch.WithPollCap(time.Hour))
	l := rlatch.New(client, redistest.Key(t))
	set(t, l, 1)
	countDown(t, l)
	return s, p, l
}

// away cuts the network until the client has noticed.
func away(t *testing.T, p *redistest.Proxy, l *rlatch.Latch) {
	t.Helper()
	p.Refuse(true)
	p.Reset()
	require.Eventually(t, func() bool {
		_, err := l.Count(within(t))
		return errors.Is(err, redlatch.ErrNotSent)
	}, soon, time.Millisecond)
}

func TestACountDownWhoseReplyIsLostIsReportedAndNotRepeated(t *testing.T) {
	t.Parallel()
	s, p, l := behind(t)
	set(t, l, 5)
	p.CutReplyAfter(0)
	require.ErrorIs(t, l.CountDown(within(t)), redlatch.ErrUncertain)
	require.EqualValues(t, 4, count(t, same(t, s, l)), "it has run, once")
	require.EqualValues(t, 4, count(t, l))
}

func TestACountDownThatWasNotSentIsSentOnce(t *testing.T) {
	t.Parallel()
	s, p, l := behind(t)
	set(t, l, 5)
	away(t, p, l)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, l.CountDown(ctx), redlatch.ErrNotSent)
	p.Refuse(false)
	countDown(t, l)
	require.EqualValues(t, 4, count(t, same(t, s, l)))
}

// Redisson's waiter sleeps on.
func TestALatchThatOpensInAGapIsNoticed(t *testing.T) {
	t.Parallel()
	s, p, l := behind(t)
	far := same(t, s, l)
	set(t, l, 1)
	came := await(within(t), l)
	listening(t, s, l, 1)
	p.Refuse(true)
	p.Reset()
	listening(t, s, l, 0)
	countDown(t, far)
	p.Refuse(false)
	opens(t, came)
}

func TestAQuestionWhoseAnswerIsLostIsAskedAgain(t *testing.T) {
	t.Parallel()
	s, p, l := behind(t)
	far := same(t, s, l)
	set(t, l, 1)
	p.CutReplyAfter(0)
	came := await(within(t), l)
	listening(t, s, l, 1)
	countDown(t, far)
	opens(t, came)
}

func TestAWaitWithoutRedisIsNotSent(t *testing.T) {
	t.Parallel()
	_, p, l := behind(t)
	away(t, p, l)
	require.ErrorIs(t, l.Wait(within(t)), redlatch.ErrNotSent)
}

// Without a message.
func TestDeletionAndExpiryEndTheWaitWithinAPollCap(t *testing.T) {
	const pollCap = 4 * time.Second
	for _, away := range [][]any{{"DEL", "job"}, {"PEXPIRE", "job", 1}, {"SET", "job", "-1"}} {
		synctest.Test(t, func(t *testing.T) {
			srv := redistest.Mini(t, embedded.WithInProcess())
			client, err := redlatch.New(srv.Server.Dial, redlatch.WithPollCap(pollCap))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, client.Close()) })
			l := rlatch.New(client, "job")
			set(t, l, 2)
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			came := await(ctx, l)
			time.Sleep(5*pollCap/2 + time.Second)
			require.Empty(t, came)
			srv.Do(t, away[0].(string), away[1:]...)
			began := time.Now()
			require.NoError(t, <-came)
			require.LessOrEqual(t, time.Since(began), pollCap)
			require.Positive(t, time.Since(began))
		})
	}
}

func TestAWaitThatEndsDuringItsFirstQuestionSaysSo(t *testing.T) {
	t.Parallel()
	_, p, l := behind(t)
	set(t, l, 1)
	p.Latency(redistest.ToClient, 500*time.Millisecond)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	err := l.Wait(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, redlatch.ErrUncertain)
	require.ErrorIs(t, err, rlatch.ErrNotOpen)
}
