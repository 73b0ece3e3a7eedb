package kinds_test

import (
	"context"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/observed"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
)

// fatal is an observer that once ends the goroutine of an event, as t.FailNow does.
type fatal struct{ event atomic.Value }

func (f *fatal) see(ctx context.Context, event any) context.Context {
	if f.event.CompareAndSwap(reflect.TypeOf(event).Name(), "") {
		runtime.Goexit()
	}
	return ctx
}

func oneLock(t *testing.T, event string) (*rlock.Lock, *fatal) {
	t.Helper()
	f := &fatal{}
	f.event.Store(event)
	srv := redistest.Mini(t, embedded.WithInProcess())
	return rlock.New(callers.InProcess(t, srv, redlatch.WithObserver(observed.By(f.see))), "k"), f
}

// Later callers must not wait for the caller whose goroutine an observer has ended.
func TestObserverMayEndGoroutine(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(objects)) {
		events := []string{"Started", "Attempted", "Queued", "Woken", "Acquired", "NotAcquired", "Ended", "Released"}
		for _, event := range testlevel.Part(events, 2, kind) {
			for _, where := range []string{"here", "elsewhere"} {
				t.Run(kind+" "+event+" "+where, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { endGoroutine(t, objects[kind], event, where == "here") })
				})
			}
		}
	}
}

func endGoroutine(t *testing.T, o object, event string, here bool) {
	t.Helper()
	srv := redistest.Mini(t, embedded.WithInProcess())
	f := &fatal{}
	f.event.Store("")
	near := callers.InProcess(t, srv, redlatch.WithObserver(observed.By(f.see)))
	holder := near
	if !here {
		holder = callers.InProcess(t, srv)
	}
	leave, err := o.hold(holder, "k")(t.Context())
	require.NoError(t, err)
	f.event.Store(event)
	call := func(wait time.Duration) {
		ctx, cancel := context.WithTimeout(t.Context(), wait)
		defer cancel()
		if leave, err := o.wait(near, "k")(ctx); err == nil {
			if err := leave(); err != nil { // a goroutine of the library has ended
				assert.ErrorIs(t, err, redlatch.ErrUncertain)
			}
		}
	}
	go call(2 * time.Second) // fails, or its goroutine ends
	time.Sleep(time.Second)
	go call(time.Minute)
	time.Sleep(5 * time.Second)
	go func() { _ = leave() }()
	time.Sleep(time.Second)
	for range 2 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		leave, err := o.wait(near, "k")(ctx)
		cancel()
		require.NoError(t, err)
		require.NoError(t, leave())
	}
}

func TestObserverMayEndReentry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := oneLock(t, "Queued")
		outer, err := l.TryLock(t.Context())
		require.NoError(t, err)
		inside := outer.Context(t.Context())
		inner, err := l.TryLock(inside)
		require.NoError(t, err)
		go func() { _, _ = l.Lock(inside) }()
		synctest.Wait()
		require.NoError(t, inner.Unlock())
		inner, err = l.TryLock(inside)
		require.NoError(t, err)
		require.NoError(t, inner.Unlock())
		require.NoError(t, outer.Unlock())
	})
}

func TestObserverMayEndUnlockAsync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, _ := oneLock(t, "Ended")
		hold, err := l.TryLock(t.Context())
		require.NoError(t, err)
		require.ErrorIs(t, <-hold.UnlockAsync(), redlatch.ErrUncertain)
		synctest.Wait()
		hold, err = l.TryLock(t.Context())
		require.NoError(t, err)
		require.NoError(t, hold.Unlock())
	})
}

// The locks are released by a single call.
func TestObserverMayEndUnlockOfSeveral(t *testing.T) {
	for event, want := range map[string]error{"Ended": redlatch.ErrUncertain, "Released": nil} {
		t.Run(event, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := true
				srv := redistest.Mini(t, embedded.WithInProcess())
				l := rmultilock.New(callers.InProcess(t, srv, redlatch.WithObserver(redlatch.Observer{
					Ended: func(context.Context, redlatch.Ended) {
						if first = !first; first && event == "Ended" { // the second
							runtime.Goexit()
						}
					},
					Released: func(context.Context, redlatch.Released) {
						if event == "Released" {
							runtime.Goexit()
						}
					},
				})), "j", "k")
				for range 2 {
					hold, err := l.TryLock(t.Context())
					require.NoError(t, err)
					require.ErrorIs(t, hold.Unlock(), want)
					synctest.Wait()
				}
			})
		})
	}
}

// The lost hold must not keep the turn.
func TestObserverMayEndLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, f := oneLock(t, "")
		hold, err := l.TryLock(t.Context())
		require.NoError(t, err)
		inside := hold.Context(t.Context())
		_, err = l.ForceUnlock(t.Context())
		require.NoError(t, err)
		f.event.Store("Ended")
		go func() { _, _ = l.TryLock(inside) }()
		synctest.Wait()
		require.ErrorIs(t, hold.Err(), redlatch.ErrLost)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		hold, err = l.Lock(ctx)
		require.NoError(t, err)
		require.NoError(t, hold.Unlock())
	})
}
