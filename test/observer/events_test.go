package observer_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/observed"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestMultiForwardsAllEventFields(t *testing.T) {
	t.Parallel()
	inBubble(t, func(x *scene) {
		e := engine.Event{
			Op: "op", Name: "name", Kind: "kind", Owner: codec.NewOwner(x.client.ID(), 1), Number: 2, Took: 3, Err: context.Canceled,
			Holder: codec.NewOwner(x.client.ID(), 4), TTL: 5, By: "by", Reentry: true, Transferred: true, NoHold: true, Panicked: true,
		}
		internal := reflect.ValueOf(e)
		x.w.since()
		hooks := reflect.ValueOf(engine.EngineOf(x.client).Hooks)
		for i := range hooks.NumField() {
			if f := hooks.Field(i); f.Type().NumIn() == 2 {
				f.Call([]reflect.Value{reflect.ValueOf(x.Context()), internal})
			}
		}
		all := x.w.since()
		require.Len(x, all, 10)
		for _, s := range all {
			event := reflect.ValueOf(s.event)
			for i := range event.NumField() {
				name, got := event.Type().Field(i).Name, event.Field(i).Interface()
				from := internal.FieldByName(name)
				switch got := got.(type) {
				case error:
					require.ErrorIs(x, got, e.Err)
					continue
				case string:
					if want, computed := map[string]string{"Outcome": "canceled", "End": "_OTHER", "LossReason": ""}[name]; computed {
						require.Equal(x, want, got)
						continue
					}
				case int:
					from = internal.FieldByName("Number")
				case time.Duration:
					if name != "TTL" {
						from = internal.FieldByName("Took")
					}
				}
				require.Equal(x, from.Interface(), got, "%T.%s", s.event, name)
			}
		}
	})
}

func TestQueuedReportsFairQueuePosition(t *testing.T) {
	t.Parallel()
	inBubble(t, func(x *scene) {
		other := open(x.T, x.srv)
		hold, err := rfairlock.New(other, "run").Lock(x.Context())
		require.NoError(x, err)
		ctx, cancel := context.WithCancel(x.Context())
		wait := func(l *rlock.Lock) {
			go func() { _, _ = l.Lock(ctx) }()
			synctest.Wait()
		}
		fair := rfairlock.New(x.client, "run")
		wait(fair)
		attempted, _ := last[redlatch.Attempted](x.T, x.w)
		require.Equal(x, hold.Owner(), attempted.Holder)
		require.Positive(x, attempted.TTL)
		wait(rfairlock.New(other, "run")) // another process
		wait(fair)
		queued := events[redlatch.Queued](x.w)
		require.Len(x, queued, 2)
		require.Equal(x, []int{1, 3}, []int{queued[0].Position, queued[1].Position})
		cancel()
		require.NoError(x, hold.Unlock())
	})
}

func TestWokenReportsCause(t *testing.T) {
	t.Parallel()
	inBubble(t, func(x *scene) {
		l := rlock.New(x.client, "job")
		theirs, err := rlock.New(open(x.T, x.srv), l.Name()).Lock(x.Context())
		require.NoError(x, err)
		done := make(chan error, 2)
		for range cap(done) {
			go func() {
				h, err := l.Lock(x.Context())
				if err == nil {
					time.Sleep(10 * time.Millisecond)
					err = h.Unlock()
				}
				done <- err
			}()
		}
		synctest.Wait()
		require.Equal(x, 2, x.client.Stats().Waiting)
		require.NoError(x, theirs.Unlock())
		require.NoError(x, <-done)
		require.NoError(x, <-done)
		by := map[string]bool{}
		for _, e := range events[redlatch.Woken](x.w) {
			by[e.By] = true
		}
		require.Equal(x, map[string]bool{"message": true, "turn": true}, by)
	})
}

// The hold is lost while the observer handles its acquisition.
func TestEndReportedAfterAcquisition(t *testing.T) {
	t.Parallel()
	inBubble(t, func(x *scene) {
		x.w.do = func(e any) {
			if _, is := e.(redlatch.Acquired); is {
				time.Sleep(3500 * time.Millisecond)
			}
		}
		hold, err := rlock.New(x.client, "job").Lock(x.Context(), rlock.WithLease(3*time.Second))
		require.NoError(x, err)
		require.ErrorIs(x, hold.Err(), redlatch.LossLeaseOver)
		ended, s := last[redlatch.Ended](x.T, x.w)
		require.Equal(x, redlatch.LossLeaseOver, ended.Err)
		follows(x.T, "redlatch.Acquired", s)
		require.ErrorIs(x, hold.Unlock(), redlatch.ErrLost)
		require.Len(x, events[redlatch.Ended](x.w), 1)
	})
}

func TestDoPassesObserverContext(t *testing.T) {
	t.Parallel()
	inBubble(t, func(x *scene) {
		l := rlock.New(x.client, "job")
		oops := errors.New("oops")
		err := l.Do(calling(x.T, "do"), func(ctx context.Context) error {
			require.Contains(x, ctx.Value(mark{"witness"}), "redlatch.DoStarted ")
			require.Equal(x, "do", ctx.Value(mark{"caller"}))
			inner, err := l.Lock(ctx) // with the proof of the hold
			require.NoError(x, err)
			require.NoError(x, inner.Unlock())
			time.Sleep(time.Second)
			return oops
		})
		require.ErrorIs(x, err, oops)
		_, started := last[redlatch.DoStarted](x.T, x.w)
		require.Nil(x, started.chain, "the context of the caller, not of the acquisition")
		ended, s := last[redlatch.DoEnded](x.T, x.w)
		follows(x.T, "redlatch.DoStarted", s)
		require.ErrorIs(x, ended.Err, oops)
		require.Equal(x, time.Second, ended.Took)
		require.False(x, ended.Panicked)
		require.Panics(x, func() {
			_ = l.Do(x.Context(), func(context.Context) error { panic("by the function") })
		})
		ended, _ = last[redlatch.DoEnded](x.T, x.w)
		require.True(x, ended.Panicked)
		require.Zero(x, x.client.Stats().Held)
	})
}

func TestObserverPanicIsRecovered(t *testing.T) {
	t.Parallel()
	inBubble(t, func(x *scene) {
		log, logger := redistest.NewJournal()
		w := &witness{do: func(any) { panic("by the observer") }}
		client := open(x.T, x.srv, redlatch.WithObserver(w.observer()), redlatch.WithLogger(logger))
		ran := false
		require.NoError(x, rlock.New(client, "job").Do(calling(x.T, "do"), func(ctx context.Context) error {
			ran = true
			require.Equal(x, "do", ctx.Value(mark{"caller"}))
			return ctx.Err()
		}))
		require.True(x, ran)
		require.Zero(x, client.Stats().Held)
		require.NoError(x, client.Close())
		require.Len(x, log.Lines("observer panicked"), 8)
	})
}

// At the first renewal, a third of the lease has passed. The remaining time minus the loss margin is the slack.
func TestRenewalReportsRemainingTime(t *testing.T) {
	t.Parallel()
	inBubble(t, func(x *scene) {
		hold, err := rlock.New(x.client, "job").Lock(x.Context(), rlock.WithWatchdog(9*time.Second))
		require.NoError(x, err)
		time.Sleep(4 * time.Second)
		renewed, _ := last[redlatch.Renewed](x.T, x.w)
		require.InDelta(x, 5100, renewed.Slack.Milliseconds(), 400)
		require.NoError(x, hold.Unlock())
	})
}

func TestClientReportsStartAndEnd(t *testing.T) {
	t.Parallel()
	inBubble(t, func(x *scene) {
		require.NoError(x, x.client.Close())
		require.NoError(x, x.client.Close())
		all := x.w.since()
		require.Len(x, all, 2)
		require.Equal(x, observed.Opened{Client: x.client}, all[0].event)
		require.Equal(x, observed.Closed{Client: x.client}, all[1].event)
	})
}

func TestClosedClientReportsLateCallsOnly(t *testing.T) {
	t.Parallel()
	inBubble(t, func(x *scene) {
		l := rlock.New(x.client, "job")
		hold, err := l.Lock(x.Context())
		require.NoError(x, err)
		require.NoError(x, x.client.Close())
		before := x.w.since()
		require.Equal(x, observed.Closed{Client: x.client}, before[len(before)-1].event)
		require.IsType(x, redlatch.Ended{}, before[len(before)-2].event)

		require.ErrorIs(x, hold.Unlock(), redlatch.ErrClosed)
		_, err = l.Lock(x.Context())
		require.ErrorIs(x, err, redlatch.ErrClosed)
		late := x.w.since()
		require.Len(x, late, 3)
		require.IsType(x, redlatch.Released{}, late[0].event)
		require.IsType(x, redlatch.Started{}, late[1].event)
		require.IsType(x, redlatch.NotAcquired{}, late[2].event)
		require.ErrorIs(x, late[2].event.(redlatch.NotAcquired).Err, redlatch.ErrClosed)
	})
}

func TestObserversReceiveSameEvents(t *testing.T) {
	t.Parallel()
	first, second := &witness{}, &witness{}
	var outcomes []any
	inBubble(t, func(x *scene) {
		require.NoError(x, rlock.New(x.client, "job").Do(x.Context(), func(context.Context) error { return nil }))
		require.NoError(x, x.client.Close())
		all := events[any](first)
		require.Len(x, all, 8)
		require.Equal(x, all, events[any](second))
		require.Len(x, outcomes, 3)
		require.IsType(x, redlatch.Acquired{}, outcomes[0])
		require.IsType(x, redlatch.Ended{}, outcomes[1])
		require.IsType(x, redlatch.Released{}, outcomes[2])
	}, first.observer(), redlatch.Observer{}, observed.Outcomes(func(e any) { outcomes = append(outcomes, e) }), second.observer())
}

// A nil context of another observer does not replace the context of the witness.
func TestNilContextKeepsContextOfOtherObservers(t *testing.T) {
	t.Parallel()
	none := observed.By(func(context.Context, any) context.Context { return nil })
	for name, join := range map[string]func(o redlatch.Observer) []redlatch.Observer{
		"after":  func(o redlatch.Observer) []redlatch.Observer { return []redlatch.Observer{o, none} },
		"before": func(o redlatch.Observer) []redlatch.Observer { return []redlatch.Observer{none, o} },
		"both":   func(o redlatch.Observer) []redlatch.Observer { return []redlatch.Observer{none, o, none} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := &witness{}
			inBubble(t, func(x *scene) {
				require.NoError(x, rlock.New(x.client, "job").Do(x.Context(), func(ctx context.Context) error {
					require.Contains(x, ctx.Value(mark{"witness"}), "redlatch.DoStarted ")
					return nil
				}))
			}, join(w.observer())...)
			for _, s := range w.since() {
				switch s.event.(type) {
				case redlatch.Acquired:
					follows(t, "redlatch.Started", s)
				case redlatch.DoEnded:
					follows(t, "redlatch.DoStarted", s)
				case redlatch.Ended, redlatch.Released:
					follows(t, "redlatch.Acquired", s)
				}
			}
		})
	}
}

// Each function gets the values of the caller's context, even without the other functions.
func TestObserverFunctionsAreOptional(t *testing.T) {
	t.Parallel()
	for function, alone := range map[string]func(all redlatch.Observer) redlatch.Observer{
		"Started":     func(all redlatch.Observer) redlatch.Observer { return redlatch.Observer{Started: all.Started} },
		"NotAcquired": func(all redlatch.Observer) redlatch.Observer { return redlatch.Observer{NotAcquired: all.NotAcquired} },
		"Attempted":   func(all redlatch.Observer) redlatch.Observer { return redlatch.Observer{Attempted: all.Attempted} },
		"Acquired":    func(all redlatch.Observer) redlatch.Observer { return redlatch.Observer{Acquired: all.Acquired} },
		"DoStarted":   func(all redlatch.Observer) redlatch.Observer { return redlatch.Observer{DoStarted: all.DoStarted} },
		"DoEnded":     func(all redlatch.Observer) redlatch.Observer { return redlatch.Observer{DoEnded: all.DoEnded} },
		"Ended":       func(all redlatch.Observer) redlatch.Observer { return redlatch.Observer{Ended: all.Ended} },
		"Released":    func(all redlatch.Observer) redlatch.Observer { return redlatch.Observer{Released: all.Released} },
	} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			var from []any
			inBubble(t, func(x *scene) {
				l := rlock.New(x.client, "job")
				require.NoError(x, l.Do(calling(x.T, "do"), func(context.Context) error {
					_, err := l.TryLock(calling(x.T, "try"))
					require.ErrorIs(x, err, redlatch.ErrNotAcquired)
					return nil
				}))
			}, alone(observed.By(func(ctx context.Context, _ any) context.Context {
				from = append(from, ctx.Value(mark{"caller"}))
				return nil // means ctx
			})))
			want := []any{"do"}
			switch function {
			case "NotAcquired", "Attempted":
				want = []any{"try"}
			case "Started":
				want = []any{"do", "try"}
			}
			require.Equal(t, want, from)
		})
	}
}
