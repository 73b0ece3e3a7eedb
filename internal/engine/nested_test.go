package engine

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

const outerOwner = "0193e6a1-7a58-7c4d-9d5f-3f6f0b8f3a12:7"

func (l *labeled) begin(ctx context.Context, t *testing.T, kind, key string) *Waiting {
	t.Helper()
	w := &Waiting{Name: "job", Kind: kind}
	require.NoError(t, l.BeginWait(w))
	l.Nest(ctx, w, key)
	return w
}

func inside(ctx context.Context, owners ...string) context.Context {
	return context.WithValue(ctx, OuterKey{}, owners)
}

func TestNestedWaitAnnouncedUntilItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLabeled(t)
		var last []any
		rule := l.tr.Answer
		l.tr.Answer = func(c *faketransport.SentCall) (any, error, bool) {
			last = append([]any{c.Call.Key(0)}, c.Call.Args[1:]...)
			return rule(c)
		}
		inside := inside(t.Context(), outerOwner, "no owner")
		l.Outer = []string{outerOwner}
		short := l.begin(t.Context(), t, "plain", "job")
		time.Sleep(nestedAfter - 1)
		l.EndWait(short)
		l.Outer = nil
		for _, w := range []*Waiting{
			l.begin(t.Context(), t, "plain", "job"), l.begin(inside, t, "permits", "job"), l.begin(inside, t, "plain", "another"),
		} {
			defer l.EndWait(w)
		}
		w := l.begin(inside, t, "plain", "job")
		time.Sleep(nestedAfter + nestedEvery)
		require.Equal(t, []string{"9.999999999s SET", "12.999999999s SET"}, l.took())
		require.Equal(t, []any{NestedKey(outerOwner), l.ClientID.String() + " 2 2 plain job", "PX", int64(10_000)}, last)
		l.EndWait(w)
		require.Equal(t, []string{"12.999999999s DEL"}, l.took())
	})
}

// Another wait inside the same hold must not replace or delete the announcement.
func TestOldestNestedWaitIsAnnouncedAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLabeled(t)
		var last string
		rule := l.tr.Answer
		l.tr.Answer = func(c *faketransport.SentCall) (any, error, bool) {
			if c.Name == "SET" {
				last, _ = c.Call.Args[1].(string)
			}
			return rule(c)
		}
		ctx := inside(t.Context(), outerOwner)
		first, second := l.begin(ctx, t, "plain", "job"), l.begin(ctx, t, "plain", "job")
		time.Sleep(nestedAfter)
		require.Equal(t, []string{"5s SET"}, l.took())
		oldest := l.announced[outerOwner][0].number
		if first.nested.number != oldest {
			first, second = second, first
		}
		l.EndWait(first)
		require.Empty(t, l.took())
		time.Sleep(nestedEvery)
		require.Equal(t, []string{"8s SET"}, l.took())
		require.Contains(t, last, fmt.Sprintf(" %d 2 plain job", second.nested.number))
		l.EndWait(second)
		require.Equal(t, []string{"8s DEL"}, l.took())
		require.Empty(t, l.announced)
	})
}

// A hook of the observer may block before EndWait, or close the client.
func TestCloseEndsAnnouncementOfStuckWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLabeled(t)
		w := l.begin(inside(t.Context(), outerOwner), t, "plain", "job")
		time.Sleep(nestedAfter)
		require.Equal(t, []string{"5s SET"}, l.took())
		require.Zero(t, closeTakes(t, l.Engine))
		require.Equal(t, []string{"5s DEL"}, l.took())
		l.EndWait(w)
	})
}

func TestClosingClientDoesNotAnnounceWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLabeled(t)
		defer l.EndWait(l.begin(inside(t.Context(), outerOwner), t, "plain", "job"))
		require.NoError(t, l.Enter()) // a call that delays Close
		defer l.Leave()
		time.AfterFunc(nestedAfter-time.Second, func() { assert.NoError(t, l.Close()) })
		time.Sleep(nestedAfter)
		require.Empty(t, l.took())
	})
}

func TestEndOfWaitInterruptsAnnouncement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLabeled(t)
		l.LabelOptional, l.tr.Answer = true, nil
		w := l.begin(inside(t.Context(), outerOwner), t, "plain", "job")
		time.Sleep(nestedAfter)
		require.Equal(t, []string{"5s SET"}, l.took())
		l.EndWait(w)
		require.Equal(t, []string{"5s DEL"}, l.took())
		require.Equal(t, labelRemoval, closeTakes(t, l.Engine))
	})
}

// The label itself is still written, so the user has the right again.
func TestAnnouncementsResumeAfterDenial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLabeled(t)
		l.Announce()
		defer l.EndWait(l.begin(inside(t.Context(), outerOwner), t, "plain", "job"))
		require.Equal(t, []string{"0s SET"}, l.took())
		l.fails.Store(&transport.ServerError{Text: "NOPERM this user has no permissions to access one of the keys"})
		time.Sleep(nestedAfter)
		require.Equal(t, []string{"5s SET"}, l.took())
		l.fails.Store(nil)
		time.Sleep(labelPeriod)
		require.Equal(t, []string{"1m0s SET", "1m2s SET", "1m5s SET"}, l.took())
	})
}

func TestEndedOuterHoldIsNotAnnounced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLabeled(t)
		ctx := &ending{Context: t.Context()}
		w := l.begin(ctx, t, "plain", "job")
		time.Sleep(nestedAfter)
		synctest.Wait()
		ctx.ended.Store(true)
		time.Sleep(time.Minute)
		require.Equal(t, []string{"5s SET", "8s DEL"}, l.took())
		l.EndWait(w)
	})
}

type ending struct {
	context.Context //nolint:containedctx // it is a context
	ended           atomic.Bool
}

func (c *ending) Value(any) any {
	if c.ended.Load() {
		return nil
	}
	return []string{outerOwner}
}

// Each attempt would be logged by the server, under another key.
func TestDeniedLabelEndsAnnouncements(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLabeled(t)
		l.LabelOptional = true
		l.fails.Store(&transport.ServerError{Text: "NOPERM this user has no permissions to access one of the keys"})
		ctx := inside(t.Context(), outerOwner)
		for range 2 {
			w := l.begin(ctx, t, "plain", "job")
			time.Sleep(time.Minute)
			l.EndWait(w)
		}
		require.Equal(t, []string{"5s SET"}, l.took())
		l.Announce()
		require.Equal(t, []string{"2m0s SET"}, l.took())
		l.fails.Store(nil)
		back := l.tr.Back
		l.tr.Back = make(chan struct{})
		close(back)
		require.Equal(t, []string{"2m0s SET"}, l.took())
		defer l.EndWait(l.begin(ctx, t, "plain", "job"))
		time.Sleep(nestedAfter)
		require.Equal(t, []string{"2m5s SET"}, l.took())
		require.Empty(t, l.log.String())
	})
}

func TestWaitersMayBeReadDuringNest(t *testing.T) {
	t.Parallel()
	l, seen := newLabeled(t), make(chan struct{})
	go func() {
		defer close(seen)
		for len(l.WaitingNow()) == 0 {
			runtime.Gosched()
		}
	}()
	w := l.begin(inside(t.Context(), outerOwner), t, "plain", "job")
	<-seen
	l.EndWait(w)
}

type usersContext struct {
	context.Context //nolint:containedctx // it is a context
	value           func()
}

func (c usersContext) Value(key any) any {
	c.value()
	return c.Context.Value(key)
}

// A user's context may call Stats, for example.
func TestWaitCallsContextWithoutMutex(t *testing.T) {
	t.Parallel()
	l, calls := newLabeled(t), 0
	ctx := usersContext{inside(t.Context(), outerOwner), func() {
		calls++
		if assert.True(t, l.waitMu.TryLock()) {
			l.waitMu.Unlock()
		}
	}}
	w := l.begin(ctx, t, "plain", "job")
	began := calls
	l.EndWait(w)
	require.Greater(t, calls, began)
}
