package rreadwritelock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

// In Redisson the release of a nested read ends the renewal of the writer.
func TestNestedReadKeepsWriterRenewal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		w := take(t, rw.Write())
		unlock(t, enter(t, rw.Read(), w))
		time.Sleep(5 * time.Minute)
		require.NoError(t, w.Err())
		refused(t, same(t, s, rw).Read())
		unlock(t, w)
		free(t, s, rw)
	})
}

// In Redisson the release and the renewals of a nested read shorten the writer's lease.
func TestNestedReadKeepsWriterLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t, redlatch.WithWatchdogTimeout(6*time.Second))
		w := take(t, rw.Write(), rlock.WithLease(2*time.Minute))
		r1 := enter(t, rw.Read(), w, rlock.WithLease(10*time.Second))
		unlock(t, enter(t, rw.Read(), w, rlock.WithLease(10*time.Second)))
		require.Greater(t, millis(t, s, rw.Name()), int64(100_000))
		unlock(t, r1)
		renewed := enter(t, rw.Read(), w)
		time.Sleep(10 * time.Second)
		require.Greater(t, millis(t, s, rw.Name()), int64(100_000))
		unlock(t, renewed)
		require.Greater(t, millis(t, s, rw.Name()), int64(100_000))
		unlock(t, w)
		free(t, s, rw)
	})
}

// javaReads makes a Redisson reader enter, and returns a function that renews as Redisson does.
func javaReads(t *testing.T, s redistest.Target, name string, lease int64) (renew func()) {
	t.Helper()
	owner := "11111111-1111-4111-8111-111111111111:1"
	s.Do(t, "HINCRBY", name, owner, 1)
	s.Do(t, "SET", protocol.HoldKey(name, owner, 1), "1", "PX", lease)
	return func() {
		s.Do(t, "PEXPIRE", protocol.HoldKey(name, owner, 1), lease)
		s.Do(t, "PEXPIRE", name, lease)
	}
}

// The renewals of Redisson's readers shorten the lock's lease. The reader dies after that.
func TestReaderRestoresShortenedLease(t *testing.T) {
	for name, opt := range map[string]rlock.Option{
		"fixed": rlock.WithLease(2 * time.Minute), "renewed": rlock.WithWatchdog(2 * time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, rw := inMemory(t, redlatch.WithWatchdogTimeout(6*time.Second))
				r := take(t, rw.Read(), opt)
				javaReads(t, s, rw.Name(), 6000)()
				require.LessOrEqual(t, millis(t, s, rw.Name()), int64(6000))
				time.Sleep(2100 * time.Millisecond) // a third of the watchdog timeout
				require.Greater(t, millis(t, s, rw.Name()), int64(50_000))
				time.Sleep(5 * time.Second)
				require.NoError(t, r.Err())
				refused(t, same(t, s, rw).Write())
				unlock(t, r)
				free(t, s, rw)
			})
		})
	}
}

// The server refuses the reader's confirmations.
func TestReaderLosesShortenedLockInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t, redlatch.WithWatchdogTimeout(3*time.Second))
		r := take(t, rw.Read(), rlock.WithLease(time.Minute))
		deadline, ok := r.Context(t.Context()).Deadline()
		require.True(t, ok)
		require.Greater(t, time.Until(deadline), 50*time.Second, "if it is confirmed")
		require.LessOrEqual(t, r.Remaining(), 3*time.Second)
		javaReads(t, s, rw.Name(), 3000)()
		s.FailWith("NOREPLICAS Not enough good replicas to write.")
		lost(t, r, 3*time.Second-time.Millisecond)
		s.Heal()
	})
}

func TestReaderLosesDeletedHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := inMemory(t)
		soonOver := redlatch.WithWatchdogTimeout(3 * time.Second)
		rw := newLock(t, s, soonOver)
		other := take(t, same(t, s, rw, soonOver).Read())
		for _, key := range []func(r *rlock.Hold) string{
			func(r *rlock.Hold) string { return protocol.HoldKey(rw.Name(), r.Owner().String(), 1) },
			func(*rlock.Hold) string { return rw.Name() },
		} {
			r := take(t, rw.Read())
			s.Do(t, "DEL", key(r))
			lost(t, r, 1100*time.Millisecond) // by the next renewal
		}
		require.ErrorIs(t, other.Unlock(), redlatch.ErrLost)
		free(t, s, rw)
	})
}

func TestCrashedReaderBlocksUntilLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t, redlatch.WithWatchdogTimeout(5*time.Second))
		alive := take(t, rw.Read())
		crashed := time.Now()
		javaReads(t, s, rw.Name(), 6000)
		w := later(within(t), same(t, s, rw).Write())
		time.Sleep(time.Second)
		unlock(t, alive)
		unlock(t, must(t, w, soon))
		require.GreaterOrEqual(t, time.Since(crashed), 6*time.Second)
		require.Less(t, time.Since(crashed), 7*time.Second)
		free(t, s, rw)
	})
}

func TestInnerUnlockKeepsOuterLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		outer := take(t, rw.Read(), rlock.WithLease(20*time.Second))
		key := protocol.HoldKey(rw.Name(), outer.Owner().String(), 1)
		inner := enter(t, rw.Read(), outer, rlock.WithLease(2*time.Minute))
		require.Greater(t, millis(t, s, key), int64(100_000))
		unlock(t, inner)
		left := millis(t, s, rw.Name())
		require.InDelta(t, 20_000, left, 1000)
		require.InDelta(t, left, millis(t, s, key), 1000)
		unlock(t, outer)
		free(t, s, rw)
	})
}

// The process dies after the downgrade.
func TestDeadDowngradedReaderBlocksUntilLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := inMemory(t)
		client, cut := cuttable(t, s)
		rw := rreadwritelock.New(client, "job")
		w := take(t, rw.Write(), rlock.WithLease(time.Minute))
		enter(t, rw.Read(), w, rlock.WithLease(2*time.Second))
		unlock(t, w)
		cut(true)
		unlock(t, must(t, later(within(t), same(t, s, rw).Write()), 3*time.Second))
		cut(false)
		free(t, s, rw)
	})
}

// Redis is unreachable for longer than the outer hold's lease, but not as long as the inner hold's.
func TestInnerReleaseRetriedForItsOwnLease(t *testing.T) {
	for name, roles := range map[string]func(c *redlatch.Client) (outer, inner *rlock.Lock){
		"same role": func(c *redlatch.Client) (outer, inner *rlock.Lock) {
			l := rreadwritelock.New(c, "job")
			return l.Write(), l.Write()
		},
		"downgraded": func(c *redlatch.Client) (outer, inner *rlock.Lock) {
			l := rreadwritelock.New(c, "job")
			return l.Write(), l.Read()
		},
		"plain": func(c *redlatch.Client) (outer, inner *rlock.Lock) {
			l := rlock.New(c, "job")
			return l, l
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := inMemory(t)
				c, cut := cuttable(t, s, redlatch.WithWatchdogTimeout(3*time.Second), redlatch.WithCommandTimeout(time.Second))
				outside, inside := roles(c)
				outer := take(t, outside)
				inner := enter(t, inside, outer, rlock.WithLease(10*time.Minute))
				unlock(t, outer)
				cut(true)
				require.Error(t, inner.Unlock())
				time.Sleep(5 * time.Second)
				cut(false)
				time.Sleep(soon)
				require.Zero(t, s.Do(t, "EXISTS", "job"))
			})
		})
	}
}

// Redis is unreachable until the writer is lost. The lock still has its read's longer lease.
func TestLostWriterReleasedDespiteLongerRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := inMemory(t)
		c, cut := cuttable(t, s, redlatch.WithWatchdogTimeout(3*time.Second), redlatch.WithCommandTimeout(time.Second))
		l := rreadwritelock.New(c, "job")
		w := take(t, l.Write())
		r := enter(t, l.Read(), w, rlock.WithLease(10*time.Minute))
		cut(true)
		time.Sleep(7 * time.Second)
		require.ErrorIs(t, w.Err(), redlatch.ErrLost)
		require.ErrorIs(t, r.Err(), redlatch.ErrLost)
		cut(false)
		time.Sleep(soon)
		require.Zero(t, s.Do(t, "EXISTS", "job"))
	})
}

// Until a hold that was handed over is resumed, no client extends the lock.
func TestHandedOverReaderResumedInTimeOrLost(t *testing.T) {
	for name, inTime := range map[string]bool{"in time": true, "too late": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, rw := inMemory(t)
				owner, err := take(t, rw.Read(), rlock.WithLease(time.Minute)).HandOver()
				require.NoError(t, err)
				javaReads(t, s, rw.Name(), 4000)()
				other := same(t, s, rw)
				if inTime {
					r, err := other.Read().Resume(within(t), owner, rlock.WithLease(time.Minute))
					require.NoError(t, err)
					time.Sleep(5 * time.Second)
					require.NoError(t, r.Err())
					refused(t, rw.Write())
					unlock(t, r)
					return
				}
				w := must(t, later(within(t), rw.Write()), 5*time.Second)
				_, err = other.Read().Resume(within(t), owner)
				require.ErrorIs(t, err, redlatch.ErrNotHeld)
				unlock(t, w)
			})
		})
	}
}

func TestNotAcquiredReportsInfiniteLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		other := same(t, s, rw)
		for _, held := range []*rlock.Lock{rw.Read(), rw.Write()} {
			h := take(t, held, rlock.WithLease(time.Minute))
			s.Do(t, "PERSIST", rw.Name())
			_, err := other.Write().TryLock(within(t))
			var refusal *redlatch.LockError
			require.ErrorAs(t, err, &refusal)
			require.Equal(t, redlatch.NoTTL, refusal.TTL)
			require.ErrorContains(t, err, "never expires")
			unlock(t, h)
		}
		free(t, s, rw)
	})
}

// The leases are longer than the watchdog timeout, whose loss margin is shorter than theirs.
func TestLongReaderLeaseOutlastsShortWatchdogTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t, redlatch.WithWatchdogTimeout(time.Second))
		fixed := take(t, rw.Read(), rlock.WithLease(20*time.Second))
		renewed := take(t, rw.Read(), rlock.WithWatchdog(20*time.Second))
		time.Sleep(3 * time.Second)
		require.NoError(t, fixed.Err())
		require.NoError(t, renewed.Err())
		unlock(t, fixed, renewed)
		synctest.Wait()
		free(t, s, rw)
	})
}
