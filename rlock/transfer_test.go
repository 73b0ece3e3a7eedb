package rlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// passes counts calls by name and lets the test replace the next transfer.
type passes struct {
	transport.Transport
	transport.Counter

	mu    sync.Mutex // guards the fields below
	calls map[string]int
	on    func(call *transport.Call, done transport.Done) // if nil, they are sent
	down  bool                                            // no call is sent
}

func (p *passes) Start(call *transport.Call, done transport.Done) {
	p.mu.Lock()
	p.calls[call.Name()]++
	on, down := p.on, p.down
	if call.Name() != "pass" {
		on = nil
	} else {
		p.on = nil // once
	}
	p.mu.Unlock()
	switch {
	case on != nil:
		on(call, done)
	case down:
		done(nil, transport.ErrNotSent)
	default:
		p.Transport.Start(call, done)
	}
}

func (p *passes) count(name string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls[name]
}

func (p *passes) next(on func(call *transport.Call, done transport.Done)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = on
}

func atPasses(t *testing.T, opts ...redlatch.Option) (*redistest.MiniServer, *passes, *redlatch.Client) {
	t.Helper()
	srv, _ := inBubble(t)
	tr := redigoTransport(srv)
	counter, ok := tr.(transport.Counter)
	require.True(t, ok)
	p := &passes{Transport: tr, Counter: counter, calls: map[string]int{}}
	return srv, p, over(t, p, opts...)
}

// burst is more turns than a local queue takes without counting listeners.
const burst = 40

func handOn(t *testing.T, l *rlock.Lock, hold *rlock.Hold, n int, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	for range n {
		w := await(t.Context(), l, opts...)
		synctest.Wait()
		require.NoError(t, hold.Unlock())
		hold = w.acquired(t, atOnce)
	}
	return hold
}

// alone returns a hold at the beginning of a burst. Its local queue does not know of any other
// contender.
func alone(t *testing.T, p *passes, l *rlock.Lock, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	hold := take(t, l, opts...)
	for range burst {
		before := p.count("pass")
		time.Sleep(20 * time.Millisecond) // the longest burst
		if hold = handOn(t, l, hold, 1, opts...); p.count("pass") > before {
			return hold
		}
	}
	require.FailNow(t, "no transfer")
	return nil
}

func TestUnlockTransfersLockToNextWaiter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, p, client := atPasses(t)
		l := rlock.New(client, "lock")
		hold := alone(t, p, l)
		released, passed, acquired := p.count("release"), p.count("pass"), p.count("acquire")
		hold = handOn(t, l, hold, 10)
		require.Equal(t, map[string]string{hold.Owner().String(): "1"}, owners(t, srv, "lock"))
		require.Equal(t, released, p.count("release"))
		require.Equal(t, acquired, p.count("acquire"))
		require.Equal(t, passed+10, p.count("pass"))
		hold = handOn(t, l, hold, 4*burst)
		require.Greater(t, p.count("release")-released, 3, "other processes are notified now and then")
		require.NoError(t, hold.Unlock())
		require.False(t, locked(t, srv, "lock"))
	})
}

func TestOutermostUnlockTransfersLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, p, client := atPasses(t)
		l := rlock.New(client, "lock")
		outer := alone(t, p, l)
		inner, err := l.Lock(outer.Context(t.Context()))
		require.NoError(t, err)
		w := await(t.Context(), l)
		synctest.Wait()
		passed := p.count("pass")
		require.NoError(t, outer.Unlock())
		w.stillWaits(t)
		require.Equal(t, passed, p.count("pass"))
		require.NoError(t, inner.Unlock())
		next := w.acquired(t, atOnce)
		require.Equal(t, passed+1, p.count("pass"))
		require.Equal(t, map[string]string{next.Owner().String(): "1"}, owners(t, srv, "lock"))
		require.NoError(t, next.Unlock())
	})
}

// robbed returns a waiter behind a hold whose lock was forcibly taken.
func robbed(t *testing.T, srv *redistest.MiniServer, p *passes, l *rlock.Lock) *waiter {
	t.Helper()
	hold := alone(t, p, l)
	w := await(t.Context(), l)
	synctest.Wait()
	holdByHand(t, srv, l.Name(), time.Hour)
	require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
	synctest.Wait()
	w.stillWaits(t)
	return w
}

func TestTransferOfLostHoldFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, p, client := atPasses(t)
		l := rlock.New(client, "lock")
		w := robbed(t, srv, p, l)
		require.Equal(t, map[string]string{foreignOwner: "1"}, owners(t, srv, "lock"))
		srv.Do(t, "DEL", "lock")
		hold := w.acquired(t, 11*time.Second)
		require.NoError(t, hold.Unlock())

		hold = alone(t, p, l)
		w = await(t.Context(), l)
		synctest.Wait()
		srv.Do(t, "DEL", "lock") // Redis has forgotten it
		require.ErrorIs(t, hold.Unlock(), redlatch.ErrLost)
		require.NoError(t, w.acquired(t, atOnce).Unlock())
		require.False(t, locked(t, srv, "lock"))
	})
}

func TestLockTransferredAfterFailedCall(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		on    func(p *passes) func(*transport.Call, transport.Done)
		fails string
	}{
		{"not sent", func(*passes) func(*transport.Call, transport.Done) {
			return func(_ *transport.Call, done transport.Done) { done(nil, transport.ErrNotSent) }
		}, ""},
		{"lost command", func(*passes) func(*transport.Call, transport.Done) {
			return func(call *transport.Call, done transport.Done) { call.Claim(0); done(nil, transport.ErrUncertain) }
		}, ""},
		{"lost reply", func(p *passes) func(*transport.Call, transport.Done) {
			return func(call *transport.Call, done transport.Done) {
				p.Transport.Start(call, func(any, error) { done(nil, transport.ErrUncertain) })
			}
		}, ""},
		{"script fails half-way", func(p *passes) func(*transport.Call, transport.Done) {
			return func(call *transport.Call, done transport.Done) {
				p.Transport.Start(call, func(any, error) { done(nil, &transport.ServerError{Text: "ERR half-way"}) })
			}
		}, "half-way"},
		{"invalid reply", func(*passes) func(*transport.Call, transport.Done) {
			return func(_ *transport.Call, done transport.Done) { done("what", nil) }
		}, "what"},
		{"invalid reply after it ran", func(p *passes) func(*transport.Call, transport.Done) {
			return func(call *transport.Call, done transport.Done) {
				p.Transport.Start(call, func(any, error) { done("what", nil) })
			}
		}, "what"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				srv, p, client := atPasses(t, redlatch.WithPollCap(time.Second))
				l := rlock.New(client, "lock")
				hold := alone(t, p, l)
				first := await(t.Context(), l)
				synctest.Wait()
				second := await(t.Context(), l)
				synctest.Wait()
				p.next(c.on(p))
				require.NoError(t, hold.Unlock())
				first.ended(t, 10*time.Second) // the lease does not end so soon
				if c.fails != "" {
					require.ErrorContains(t, first.err, c.fails)
				} else {
					require.NoError(t, first.err)
					require.Equal(t, map[string]string{first.hold.Owner().String(): "1"}, owners(t, srv, "lock"))
					require.NoError(t, first.hold.Unlock())
				}
				next := second.acquired(t, 10*time.Second)
				require.Equal(t, map[string]string{next.Owner().String(): "1"}, owners(t, srv, "lock"))
				require.NoError(t, next.Unlock())
				time.Sleep(time.Minute) // background calls complete
				require.False(t, locked(t, srv, "lock"))
			})
		})
	}
}

func TestTransferringUnlockTimesOut(t *testing.T) {
	for lease, bound := range map[time.Duration]time.Duration{time.Minute: 3 * time.Second, time.Second: time.Second} {
		t.Run(fmt.Sprint(lease), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, p, client := atPasses(t)
				l := rlock.New(client, "lock")
				hold := alone(t, p, l, rlock.WithLease(lease))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w := await(ctx, l)
				synctest.Wait()
				var late func()
				p.next(func(call *transport.Call, done transport.Done) {
					sent := faketransport.InFlight(call)
					late = func() { p.Transport.Start(sent, done) }
				})
				began := time.Now()
				require.ErrorIs(t, hold.Unlock(), redlatch.ErrUncertain)
				took := time.Since(began)
				require.LessOrEqual(t, took, bound)
				require.Greater(t, took, bound*3/4)
				time.Sleep(time.Second)
				next := w.acquired(t, time.Minute)
				late() // another owner holds the lock
				time.Sleep(time.Second)
				require.NoError(t, next.Err())
				require.Equal(t, map[string]string{next.Owner().String(): "1"}, owners(t, srv, "lock"))
				require.NoError(t, next.Unlock())
			})
		})
	}
}

// The transfer's reply is lost, and then the connection.
func TestUnlockAfterTransferInDoubtReturnsErrUncertain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv, p, client := atPasses(t)
		l := rlock.New(client, "lock")
		hold := alone(t, p, l)
		w := await(t.Context(), l)
		synctest.Wait()
		down := func(on bool) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.down = on
		}
		p.next(func(call *transport.Call, done transport.Done) {
			p.Transport.Start(call, func(any, error) {
				down(true)
				done(nil, transport.ErrUncertain)
			})
		})
		err := hold.Unlock()
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		require.NotErrorIs(t, err, redlatch.ErrNotSent)
		down(false)
		next := w.acquired(t, time.Minute)
		require.Equal(t, map[string]string{next.Owner().String(): "1"}, owners(t, srv, "lock"))
		require.NoError(t, next.Unlock())
	})
}

// Redisson's waiters need a message per turn.
func TestLockFreedForRedissonWaiters(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, p, client := atPasses(t)
		l := rlock.New(client, "lock")
		w := robbed(t, srv, p, l)
		freeByHand(t, srv, "lock")
		passed, released := p.count("pass"), p.count("release")
		hold := handOn(t, l, w.acquired(t, atOnce), burst)
		require.Equal(t, passed, p.count("pass"))
		require.GreaterOrEqual(t, p.count("release"), released+burst)
		time.Sleep(time.Minute) // the lock stays free
		hold = handOn(t, l, hold, burst)
		require.Greater(t, p.count("pass"), passed)
		require.NoError(t, hold.Unlock())
	})
}

// leaving runs a function just before the end of the context is first noticed.
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
func TestCanceledWaiterPassesOnTransferredLock(t *testing.T) {
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
