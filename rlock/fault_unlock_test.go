package rlock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

func TestU30DoUnlocksWhenContextCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, client := inBubble(t)
		l := rlock.New(client, "job")
		for _, want := range []error{context.Canceled, context.DeadlineExceeded} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			err := l.Do(ctx, func(ctx context.Context) error {
				require.True(t, locked(t, srv, "job"))
				if errors.Is(want, context.Canceled) {
					cancel()
				}
				<-ctx.Done()
				return context.Cause(ctx)
			})
			require.ErrorIs(t, err, want)
			require.NotErrorIs(t, err, redlatch.ErrNotHeld)
			require.False(t, locked(t, srv, "job"))
		}
	})
}

// replyLosses are ways to lose the reply to a release.
var replyLosses = map[string]struct {
	lose, heal func(w *wire)
	known      bool // Unlock itself detects that the lock is free
}{
	"late":  {heal: func(*wire) {}, known: true},
	"reset": {lose: (*wire).reset, known: true},
	"reset, and unreachable for longer than Unlock waits": {
		lose: func(w *wire) { w.refuse.Store(true); w.reset() }, heal: func(w *wire) { w.refuse.Store(false) },
	},
	"never": {},
}

func TestU32UnlockWithLostReplyReleasesOnce(t *testing.T) {
	for name, loss := range replyLosses {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logged, log := newJournal()
				w, client := wired(t, 0, log, redlatch.WithCommandTimeout(time.Second))
				loadScripts(t, client)
				hold := take(t, rlock.New(client, "job"))
				messages := wakeUps(t, w.srv, "job")
				speak := w.holdReplies()
				outcome := hold.UnlockAsync()
				synctest.Wait()
				require.False(t, locked(t, w.srv, "job"))
				if loss.lose != nil {
					loss.lose(w)
				}
				if name != "never" {
					speak()
				}
				err := <-outcome
				if loss.known {
					require.NoError(t, err)
				} else {
					requireTransportError(t, err)
					require.ErrorIs(t, err, redlatch.ErrUncertain)
				}
				if name == "never" {
					speak()
				}
				if loss.heal != nil {
					loss.heal(w)
				}
				time.Sleep(soon)
				require.Equal(t, !loss.known, logged.count(settled, "job") == 1)
				require.Equal(t, err, hold.Unlock(), "later calls return the first result")
				require.Equal(t, 1, messages())
				require.Empty(t, keysLike(t, w.srv, "*"), "no latch key remains")
			})
		})
	}
}

func TestU32LostUnlockCommandIsResent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0)
		hold := take(t, rlock.New(client, "job"))
		messages := wakeUps(t, w.srv, "job")
		w.hole.Store(true)
		outcome := hold.UnlockAsync()
		synctest.Wait()
		w.heal()
		require.NoError(t, <-outcome)
		require.False(t, locked(t, w.srv, "job"))
		require.Equal(t, 1, messages())
	})
}

func TestUnlockRetriedInBackgroundAfterOutage(t *testing.T) {
	for name, opts := range map[string][]rlock.Option{"own": nil, "given": {rlock.WithOwner(newOwner())}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				logged, log := newJournal()
				w, client := wired(t, 0, log, redlatch.WithCommandTimeout(time.Second))
				hold := take(t, rlock.New(client, "job"), opts...)
				w.refuse.Store(true)
				w.reset()
				began := time.Now()
				requireTransportError(t, hold.Unlock())
				require.LessOrEqual(t, time.Since(began), 2*time.Second) // the last pause between dials may overrun
				require.True(t, locked(t, w.srv, "job"))
				w.refuse.Store(false)
				time.Sleep(5 * time.Second)
				require.False(t, locked(t, w.srv, "job"))
				if name == "own" {
					require.Equal(t, 1, logged.count(settled, "job", "was_held=true"))
				}
				time.Sleep(soon)
				require.Empty(t, keysLike(t, w.srv, "*"), "no latch remains")
			})
		})
	}
}

// A renewal may find the lock already released.
func TestU31RenewalDuringSlowUnlockIsNotLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const took = shortLease / 3
		client := over(t, &faketransport.Fake{Answer: func(c *faketransport.SentCall) (any, error, bool) {
			if c.Name == "release" {
				time.AfterFunc(took, func() { c.Ends(int64(1), nil) })
			}
			return map[string]any{"renew": []any{int64(0)}}[c.Name], nil, c.Name != "release"
		}})
		hold := take(t, rlock.New(client, "job"), rlock.WithWatchdog(shortLease))
		ctx := hold.Context(t.Context())
		time.Sleep(shortLease / 6)
		began := time.Now()
		require.NoError(t, hold.Unlock())
		require.Equal(t, took, time.Since(began))
		require.ErrorIs(t, context.Cause(ctx), redlatch.ErrNotHeld)
	})
}

// connectionFaults break connections and release the lock in between.
var connectionFaults = map[string]func(w *wire, free func()){
	"subscriptions reset": func(w *wire, free func()) { w.resetThose(true); free(); w.resetThose(true) },
	"commands reset":      func(w *wire, free func()) { w.resetThose(false); free(); w.resetThose(false) },
	"all rejected for a while": func(w *wire, free func()) {
		w.refuse.Store(true)
		w.reset()
		free()
		time.Sleep(time.Second)
		w.refuse.Store(false)
	},
	"paused": func(w *wire, free func()) {
		free()
		speak := w.holdReplies()
		time.Sleep(500 * time.Millisecond)
		speak()
	},
	"away for longer than commands may take": func(w *wire, free func()) {
		free()
		w.hole.Store(true)
		time.Sleep(2500 * time.Millisecond)
		w.heal()
	},
}

func TestU16WaitersAcquireAfterReconnect(t *testing.T) {
	t.Parallel()
	const clients, waitersEach = 2, 5
	for name, breakThem := range connectionFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wire{srv: redistest.Mini(t, embedded.WithInProcess())}
				holdByHand(t, w.srv, "job", forever)
				inside := 0
				var waiters []*waiter
				for range clients {
					l := rlock.New(w.client(t, noPoll(), redlatch.WithCommandTimeout(time.Second)), "job")
					for range waitersEach {
						waiters = append(waiters, inBackground(func() (*rlock.Hold, error) {
							hold, err := l.Lock(t.Context())
							if err != nil {
								return nil, err
							}
							inside++ // the lock guards it
							assert.Equal(t, 1, inside, "one at a time")
							inside--
							if err = hold.Unlock(); errors.Is(err, redlatch.ErrUncertain) {
								err = nil // the fault outlasted it, but the lock is released
							}
							return hold, err
						}))
					}
				}
				time.Sleep(time.Second)
				breakThem(w, func() { freeByHand(t, w.srv, "job") })
				for _, w := range waiters {
					w.acquired(t, soon)
				}
				time.Sleep(soon)
				require.False(t, locked(t, w.srv, "job"))
			})
		})
	}
}

func TestHoldSurvivesLostConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, time.Millisecond)
		hold := take(t, rlock.New(client, "job"))
		holdByHand(t, w.srv, "other", time.Hour) // its waiter has the connection for subscriptions
		waiter := await(t.Context(), rlock.New(client, "other"))
		for range 3 {
			time.Sleep(25 * time.Second)
			w.reset()
		}
		time.Sleep(time.Minute)
		require.NoError(t, hold.Unlock())
		waiter.stillWaits(t)
		freed := time.Now()
		freeByHand(t, w.srv, "other")
		require.NoError(t, waiter.acquired(t, soon).Unlock())
		require.Less(t, time.Since(freed), time.Second)
	})
}
