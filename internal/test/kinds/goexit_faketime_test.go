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
)

// fatal is an observer that once ends the goroutine of an event, as t.FailNow does.
type fatal struct{ event atomic.Value }

func (f *fatal) see(ctx context.Context, event any) context.Context {
	if f.event.CompareAndSwap(reflect.TypeOf(event).Name(), "") {
		runtime.Goexit()
	}
	return ctx
}

// Later callers must not wait for the caller whose goroutine an observer has ended.
func TestObserverMayEndGoroutine(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(objects)) {
		for _, event := range []string{"Started", "Attempted", "Queued", "Woken", "NotAcquired", "Released"} {
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
			assert.NoError(t, leave())
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
