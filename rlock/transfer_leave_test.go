package rlock_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// leaving runs a function before its end is first seen.
type leaving struct {
	context.Context //nolint:containedctx // it is a context
	first           func()
}

func (l *leaving) Err() error {
	if l.Context.Err() != nil && l.first != nil {
		first := l.first
		l.first = nil
		first()
	}
	return l.Context.Err()
}

// The wait ends at four moments around the transfer. The next waiter always gets the lock.
func TestWaiterThatLeavesTransfersALockThatWasGivenToIt(t *testing.T) {
	const before, given, unsent, sent = "before", "given", "unsent", "sent"
	for _, when := range []string{before, given, unsent, sent} {
		t.Run(when, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				woken := func() {}
				srv, p, client := atPasses(t, noPoll(), redlatch.WithObserver(redlatch.Observer{
					Woken: func(context.Context, redlatch.Woken) { woken() },
				}))
				l := rlock.New(client, "lock")
				hold := alone(t, p, l)
				passed := p.count("pass")
				end := &leaving{Context: ctx}
				leaver := await(end, l)
				synctest.Wait()
				stayer := await(t.Context(), l)
				synctest.Wait()

				unlocked := make(chan error, 1)
				unlock := func() { unlocked <- hold.Unlock() }
				switch when {
				case before:
					cancel()
					synctest.Wait()
					unlock()
				case given:
					end.first = func() { go unlock(); synctest.Wait() }
					cancel()
				case unsent:
					woken = func() { woken = func() {}; cancel() }
					p.next(func(call *transport.Call, done transport.Done) {
						time.AfterFunc(time.Second, func() { p.Transport.Start(call, done) })
					})
					unlock()
				case sent:
					p.next(func(call *transport.Call, done transport.Done) {
						p.Transport.Start(call, func(reply any, err error) {
							cancel()
							time.AfterFunc(time.Second, func() { done(reply, err) })
						})
					})
					unlock()
				}
				requireOnly(t, leaver.failed(t, atOnce), "lock", "lock", redlatch.ErrNotAcquired, context.Canceled)
				require.NoError(t, <-unlocked)
				next := stayer.acquired(t, 2*time.Second)
				require.Equal(t, passed+1, p.count("pass"))
				require.NoError(t, next.Unlock())
				synctest.Wait()
				require.False(t, locked(t, srv, "lock"))
			})
		})
	}
}

// A client with a single caller frees the lock after each turn.
func TestClientsShareContendedLock(t *testing.T) {
	for name, callers := range map[string][]int{"many callers each": {16, 16, 16, 16}, "one caller in one": {16, 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, first := wired(t, time.Millisecond)
				loadScripts(t, first)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				turns, total := make([]int, len(callers)), 0 // guarded by the lock
				var wg sync.WaitGroup
				for i, n := range callers {
					l := rlock.New(w.client(t), "lock")
					for range n {
						wg.Go(func() {
							for ctx.Err() == nil {
								if hold, err := l.Lock(ctx); err == nil {
									turns[i]++
									total++
									assert.NoError(t, hold.Unlock())
								}
							}
						})
					}
				}
				wg.Wait()
				for _, n := range turns {
					require.GreaterOrEqual(t, float64(n)/float64(total), 0.12, "%v of %d", turns, total)
				}
			})
		})
	}
}
