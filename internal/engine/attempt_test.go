package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

var (
	errBroken  = fmt.Errorf("%w: connection reset", transport.ErrUncertain)
	errNotSent = fmt.Errorf("%w: connection refused", transport.ErrNotSent)
	errRefused = &transport.ServerError{Text: "NOPERM this user has no permissions"}
	errReason  = errors.New("the caller's reason")
)

// running is a Run in the background.
type running struct {
	attempt *Attempt
	done    chan struct{}
	reply   any
	err     error
	took    time.Duration
}

func run(ctx context.Context, e *Engine, resolver Resolver) *running {
	a := e.Attempt()
	r := &running{attempt: a, done: make(chan struct{})}
	a.Call.Command = "TEST"
	began := time.Now()
	e.Join() // as every user's call does
	go func() {
		defer close(r.done)
		defer e.Leave()
		r.reply, r.err = a.Run(ctx, resolver)
		r.took = time.Since(began)
	}()
	synctest.Wait()
	return r
}

func (r *running) ended(t *testing.T) *running {
	t.Helper()
	synctest.Wait()
	select {
	case <-r.done:
	default:
		require.FailNow(t, "Run is still there")
	}
	return r
}

func TestRunReturnsOutcome(t *testing.T) {
	for _, c := range []struct {
		reply   any
		err     error
		inDoubt int
	}{
		{reply: int64(7)},
		{reply: nil},
		{err: errRefused},
		{err: errNotSent},
		{err: errBroken, inDoubt: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			f, resolver := &faketransport.Fake{}, &recorder{}
			e, _ := engineOver(t, f)
			r := run(t.Context(), e, resolver)
			f.Last(t).Ends(c.reply, c.err)
			r.ended(t)
			require.Equal(t, c.reply, r.reply)
			require.Equal(t, c.err, r.err)
			require.Equal(t, noted{inDoubt: c.inDoubt}, resolver.seen())
		})
	}
}

// waitEnds are the ways to end the wait for a call.
var waitEnds = []struct {
	name string
	end  func(e *Engine, cancel context.CancelCauseFunc)
	why  error
}{
	{"context", func(_ *Engine, cancel context.CancelCauseFunc) { cancel(errReason) }, errReason},
	{"timeout", func(*Engine, context.CancelCauseFunc) { time.Sleep(testCommand) }, nil},
	{"close", func(e *Engine, _ context.CancelCauseFunc) { e.beginClosing() }, ErrClosed},
}

// lateOutcomes are outcomes after the end of the wait.
var lateOutcomes = []struct {
	name  string
	reply any
	err   error
	noted noted
}{
	{"a reply", int64(1), nil, noted{late: 1, reply: int64(1)}},
	{"acquired", nil, nil, noted{late: 1}},
	{"an error", nil, errRefused, noted{late: 1, err: errRefused}},
	{"lost", nil, errBroken, noted{inDoubt: 1}},
	{"never ran", nil, errNotSent, noted{late: 1, err: errNotSent}},
}

func TestResolverGetsAbandonedCallOnce(t *testing.T) {
	for _, w := range waitEnds {
		for _, o := range lateOutcomes {
			t.Run(w.name+", "+o.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, resolver := &faketransport.Fake{Conn: 5}, &recorder{}
					e, _ := engineOver(t, f)
					var conn int64
					resolver.resolves = func() *InDoubt {
						d := &InDoubt{}
						d.Done = func(bool) { conn = d.attempt.Call.Conn() }
						return d
					}
					ctx, cancel := context.WithCancelCause(t.Context())
					defer cancel(nil)
					r := run(ctx, e, resolver)
					w.end(e, cancel)
					r.ended(t)
					require.ErrorIs(t, r.err, ErrUncertain)
					require.NotErrorIs(t, r.err, ErrNotSent)
					if w.why != nil {
						require.ErrorIs(t, r.err, w.why)
						require.Zero(t, r.took)
					}
					require.Zero(t, resolver.seen(), "the outcome is unknown")

					f.Last(t).Ends(o.reply, o.err)
					synctest.Wait()
					require.Equal(t, o.noted, resolver.seen())
					if o.noted.inDoubt > 0 {
						require.Equal(t, int64(5), conn, "the call is still there to be fenced")
					}
					require.Zero(t, e.inFlight.Load())
				})
			})
		}
	}
}

// The cause may wrap our own errors, such as the loss of another lock.
func TestContextCauseDoesNotDecideOutcome(t *testing.T) {
	require.Contains(t, ours, ErrNotNotified)
	for _, own := range ours {
		synctest.Test(t, func(t *testing.T) {
			f := &faketransport.Fake{Conn: 5}
			e, _ := engineOver(t, f)
			ctx, cancel := context.WithCancelCause(t.Context())
			cause := fmt.Errorf("a sibling: %w", own)
			r := run(ctx, e, nil)
			cancel(cause)
			r.ended(t)
			require.ErrorIs(t, r.err, ErrUncertain)
			require.ErrorIs(t, r.err, context.Canceled)
			require.ErrorContains(t, r.err, "a sibling")
			for _, err := range append([]error{cause}, ours...) {
				require.Equal(t, err == ErrUncertain, errors.Is(r.err, err), err) //nolint:errorlint // identity is meant
			}
			f.Last(t).Ends(nil, nil)
		})
	}
}

func TestUnsentCallIsWithdrawnWithoutResolver(t *testing.T) {
	for _, w := range waitEnds {
		t.Run(w.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, resolver := &faketransport.Fake{Queues: true}, &recorder{}
				e, _ := engineOver(t, f)
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				r := run(ctx, e, resolver)
				w.end(e, cancel)
				r.ended(t)
				require.ErrorIs(t, r.err, ErrNotSent)
				require.NotErrorIs(t, r.err, ErrUncertain)
				c := f.Last(t)
				require.False(t, c.Call.Claim(1), "it must never be sent")
				require.Equal(t, "TEST", c.Call.Command, "the transport still has it")
				c.Ends(nil, transport.ErrNotSent)
				synctest.Wait()
				require.Zero(t, resolver.seen())
				requireFreedOnce(t, e, r.attempt)
				require.Zero(t, e.inFlight.Load())
			})
		})
	}
}

func TestRunForContinuesDuringClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fake{}
		e, _ := engineOver(t, f)
		e.beginClosing()
		a := e.Attempt()
		a.Call.Command = "TEST"
		began := time.Now()
		_, err := a.RunFor(2*time.Second, nil)
		require.ErrorIs(t, err, ErrUncertain)
		require.Equal(t, 2*time.Second, time.Since(began))

		go func() {
			time.Sleep(time.Second)
			calls := f.Sent()
			calls[len(calls)-1].Ends("fine", nil)
		}()
		b := e.Attempt()
		b.Call.Command = "TEST"
		reply, err := b.RunFor(2*time.Second, nil)
		require.NoError(t, err)
		require.Equal(t, "fine", reply)
	})
}

// The reply reaches either the caller or the resolver.
func TestReplyRacingWithTimeoutIsDeliveredOnce(t *testing.T) {
	t.Parallel()
	f := &faketransport.Fake{}
	e, _ := engineOver(t, f)
	for i := range 2000 {
		resolver := &recorder{}
		ctx, cancel := context.WithCancel(t.Context())
		a := e.Attempt()
		a.Call.Command = "TEST"
		started := make(chan struct{})
		f.Answer = func(*faketransport.SentCall) (any, error, bool) { close(started); return nil, nil, false }
		var wg sync.WaitGroup
		var reply any
		var err error
		wg.Go(func() { reply, err = a.Run(ctx, resolver) })
		<-started
		wg.Go(cancel)
		wg.Go(func() { f.Last(t).Ends(int64(i), nil) })
		wg.Wait()
		if err == nil {
			require.Equal(t, int64(i), reply)
			require.Zero(t, resolver.seen())
		} else {
			require.ErrorIs(t, err, ErrUncertain)
			require.ErrorIs(t, err, context.Canceled)
			require.Equal(t, noted{late: 1, reply: int64(i)}, resolver.seen())
		}
	}
	require.Zero(t, e.inFlight.Load())
}

func TestUnsentCallIsWithdrawnAtHalfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &faketransport.Fake{Queues: true}
		e, _ := engineOver(t, f)
		resolver := &recorder{}
		r := run(t.Context(), e, resolver)
		time.Sleep(testCommand)
		r.ended(t)
		require.Equal(t, testCommand/2, r.took)
		require.ErrorIs(t, r.err, ErrNotSent)
		require.ErrorContains(t, r.err, "not sent within")
		require.False(t, f.Last(t).Call.Claim(7))
		f.Last(t).Ends(nil, errNotSent)

		f.Queues = false // a sent call may use all of its time
		r = run(t.Context(), e, resolver)
		time.Sleep(testCommand)
		r.ended(t)
		require.Equal(t, testCommand, r.took)
		require.ErrorIs(t, r.err, ErrUncertain)
		require.ErrorContains(t, r.err, "no reply within 3s")
		f.Last(t).Ends(nil, nil)
		require.Equal(t, noted{late: 1}, resolver.seen())
	})
}

// requireFreedOnce checks that an attempt is in the pool at most once.
func requireFreedOnce(t *testing.T, e *Engine, a *Attempt) {
	t.Helper()
	require.Empty(t, a.Call.Command, "it is not free")
	require.Nil(t, a.resolver)
	times := 0
	for range 10 {
		if e.Attempt() == a {
			times++
		}
	}
	require.LessOrEqual(t, times, 1, "two callers would share it")
}

// resolvers are the ways to resolve a call in doubt.
var resolvers = map[string]Resolver{
	"no resolver":      nil,
	"nothing to do":    &recorder{},
	"fenced":           &recorder{resolves: func() *InDoubt { return &InDoubt{} }},
	"undone":           &recorder{resolves: func() *InDoubt { return undoing(nil) }},
	"superseded":       &recorder{resolves: superseded},
	"cannot be undone": &recorder{resolves: notPermitted},
}

func superseded() *InDoubt {
	d := undoing(nil)
	d.Superseded = func() bool { return true }
	return d
}

func notPermitted() *InDoubt {
	d := undoing(nil)
	d.Undo = func(Run) (bool, error) { return false, errRefused }
	return d
}

func TestFreedAttemptKeepsCapacityButNotArguments(t *testing.T) {
	e, _ := engineOver(t, &faketransport.Fake{})
	a := e.Attempt()
	a.Call.Command, a.Call.Args = "TEST", append(make([]any, 0, 8), "key", "value")
	args := a.Call.Args
	require.True(t, a.Call.Claim(7))
	require.False(t, a.Call.Abandon())
	a.free()
	require.Empty(t, a.Call.Args)
	require.Equal(t, 8, cap(a.Call.Args))
	require.Equal(t, []any{nil, nil}, args)
	require.Zero(t, a.Call.Conn())
	require.True(t, a.Call.Claim(0), "the next call can be sent")
}

func TestAttemptIsFreedOnce(t *testing.T) {
	for name, resolver := range resolvers {
		for _, o := range lateOutcomes {
			for when, leaves := range map[string]bool{"awaited": false, "left": true} {
				t.Run(name+", "+o.name+", "+when, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						f := &faketransport.Fake{}
						e, _ := engineOver(t, f)
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						r := run(ctx, e, resolver)
						if leaves {
							cancel()
							r.ended(t)
							require.Equal(t, "TEST", r.attempt.Call.Command, "the transport still has it")
						}
						f.Answer = answering(int64(1), nil) // the undoing's
						f.Last(t).Ends(o.reply, o.err)
						r.ended(t)
						e.work.Wait()
						requireFreedOnce(t, e, r.attempt)
						require.Zero(t, e.inFlight.Load())
					})
				})
			}
		}
	}
}

// An alarm that came at the same time as the reply remains.
func TestReusedAttemptIgnoresEarlierAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, _ := engineOver(t, &faketransport.Fake{})
		a := e.Attempt()
		e.timeouts.add(a, 0)
		synctest.Wait()
		e.timeouts.remove(a)
		require.Len(t, a.alarm, 1)
		began := time.Now()
		_, err := a.RunFor(testCommand, nil)
		require.Error(t, err)
		require.Equal(t, testCommand, time.Since(began))
	})
}
