package rsemaphore

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/countqueue"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

var (
	grant   any = int64(0)
	refusal any = []any{int64(-1), int64(0)}
)

type quiet struct{ *faketransport.Fake }

func (quiet) Subscribe(context.Context, string) (transport.Subscription, error) {
	return silence{}, nil
}

type silence struct{}

func (silence) Events() <-chan transport.Event { return nil }
func (silence) Close()                         {}
func (silence) Err() error                     { return nil }

// oneTaking returns a call for one permit. answer returns the outcomes of its attempts.
func oneTaking(answer func(*faketransport.SentCall) (any, error, bool)) (*taking, *faketransport.Fake) {
	fake := &faketransport.Fake{Conn: 1, Answer: answer}
	e := engine.New(engine.Config{
		Transport: quiet{fake}, ClientID: uuid.New(), Lease: 30 * time.Second, Command: 3 * time.Second,
		PollCap: 10 * time.Second, Logger: slog.New(slog.DiscardHandler),
	})
	a := newTaking(&Semaphore{engine: e, name: "job", kind: newCounter(e, "job")}, 1)
	a.Began = time.Now()
	return a, fake
}

func (a *taking) wait(ctx context.Context) error {
	return a.Run(ctx, countqueue.New(a.Engine, &a.kind, 1))
}

// lateClaims makes claims whose replies arrive after the timeout and before Settle.
type lateClaims struct {
	*taking
	arrives func()
}

func (l lateClaims) Claim(s acquire.Reusable) acquire.Claim {
	l.taking.Claim(s)
	return l
}

func (l lateClaims) Settle(ctx context.Context, err error) (any, error) {
	l.arrives()
	return l.taking.Settle(ctx, err)
}

// If only the command timeout ended the attempt, the call continues as if the reply had arrived in
// time.
func TestReplyBetweenTimeoutAndSettle(t *testing.T) {
	loading := &transport.ServerError{Text: "LOADING Redis is loading the dataset in memory"}
	for name, c := range map[string]struct {
		attempt int // which of the attempts it is
		reply   any
		err     error
		asks    int
		want    error
	}{
		"first granted":    {1, grant, nil, 1, nil},
		"first refused":    {1, refusal, nil, 2, nil},
		"first not sent":   {1, nil, transport.ErrNotSent, 1, transport.ErrNotSent}, // as after a command timeout
		"first not run":    {1, nil, loading, 1, loading},
		"waiter granted":   {3, grant, nil, 3, nil},
		"waiter refused":   {3, refusal, nil, 4, nil},
		"waiter not sent":  {3, nil, transport.ErrNotSent, 4, nil},
		"waiter not run":   {3, nil, loading, 4, nil},
		"waiter uncertain": {3, nil, transport.ErrUncertain, 3, transport.ErrUncertain},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var fake *faketransport.Fake
				a, fake := oneTaking(func(*faketransport.SentCall) (any, error, bool) {
					switch n := len(fake.Sent()); {
					case n < c.attempt:
						return refusal, nil, true
					case n == c.attempt:
						return nil, nil, false
					}
					return grant, nil, true
				})
				a.Claims = lateClaims{a, func() { fake.Last(t).Ends(c.reply, c.err) }}
				err := a.wait(t.Context())
				if c.want == nil {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, c.want)
				}
				require.Len(t, fake.Sent(), c.asks)
				require.NoError(t, a.Engine.Close())
			})
		})
	}
}

func TestLateRefusalAfterWaitReturnsNotAcquired(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, fake := oneTaking(nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		time.AfterFunc(time.Second+acquire.Overdue/2, func() { fake.Last(t).Ends(refusal, nil) })
		err := a.wait(ctx)
		require.ErrorIs(t, err, engine.ErrNotAcquired)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, engine.ErrUncertain)
		require.Len(t, fake.Sent(), 1, "an attempt began after the wait had ended")
		require.NoError(t, a.Engine.Close())
	})
}

func TestLateGrantDuringSettleIsAcquiredOrReleased(t *testing.T) {
	t.Parallel()
	for range 300 {
		a, fake := oneTaking(func(*faketransport.SentCall) (any, error, bool) { return int64(1), nil, true })
		a.Claim(nil)
		begin := make(chan struct{})
		var reply any
		var err error
		var both sync.WaitGroup
		both.Go(func() { <-begin; a.Late(grant, nil) })
		both.Go(func() { <-begin; reply, err = a.Settle(t.Context(), engine.ErrUncertain) })
		close(begin)
		both.Wait()
		require.NoError(t, a.Engine.Close())
		if err == nil {
			require.Equal(t, grant, reply)
			require.Empty(t, fake.Sent(), "the permit was acquired and released")
		} else {
			require.Equal(t, engine.ErrUncertain, err)
			require.Len(t, fake.Sent(), 1, "the permit was neither acquired nor released")
		}
	}
}
