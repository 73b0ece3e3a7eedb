package hold_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/transport"
)

// Freeing the lock before Unlock does would look like a loss.
func TestReentryResolverLeavesReleaseToUnlock(t *testing.T) {
	t.Parallel()
	client := embeddedClient(t)
	l := rlock.New(client, "job")
	h, err := l.TryLock(t.Context())
	require.NoError(t, err)

	free, corrected := hold.LeaveAndCorrect(hold.Of(h))
	require.True(t, corrected, "it ends the change")

	locked, err := l.IsLocked(t.Context())
	require.NoError(t, err)
	require.True(t, locked)
	require.NoError(t, free(time.Second))
}

func TestStaleReentryRefusalKeepsNewerHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reenter *faketransport.SentCall
		tr := &faketransport.Fake{Answer: func(c *faketransport.SentCall) (any, error, bool) {
			switch c.Name {
			case "acquire":
				return nil, nil, true
			case "reenter":
				reenter = c
				return nil, nil, false
			}
			return int64(1), nil, true
		}}
		client := clientOver(t, tr)
		l, owner := rlock.New(client, "job"), codec.NewOwner(uuid.New(), 1)
		take := func() *rlock.Hold {
			h, err := l.TryLock(t.Context(), rlock.WithOwner(owner), rlock.WithLease(time.Hour))
			require.NoError(t, err)
			return h
		}
		old := take()
		inner := make(chan error, 1)
		go func() {
			_, err := l.TryLock(old.Context(t.Context()))
			inner <- err
		}()
		synctest.Wait()
		require.NotNil(t, reenter)
		time.Sleep(time.Millisecond)
		newer := take()
		reenter.Ends(nil, nil)
		require.ErrorIs(t, <-inner, redlatch.ErrLost)
		require.ErrorIs(t, old.Err(), redlatch.ErrLost)
		require.NoError(t, newer.Err())
		require.NoError(t, newer.Unlock())
	})
}

func TestUnlockAfterReentryTakesOneCommandTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const command = 3 * time.Second
		var reentries []*faketransport.SentCall
		tr := &faketransport.Fake{Answer: func(c *faketransport.SentCall) (any, error, bool) {
			switch c.Name {
			case "acquire":
				return nil, nil, true
			case "reenter":
				reentries = append(reentries, c)
				return int64(1), nil, len(reentries) == 1
			}
			return nil, nil, false
		}}
		client := clientOver(t, tr, redlatch.WithCommandTimeout(command))
		l := rlock.New(client, "job")
		outer, err := l.Lock(t.Context())
		require.NoError(t, err)
		inner, err := l.Lock(outer.Context(t.Context()))
		require.NoError(t, err)
		innermost := make(chan error, 1)
		ctx := context.WithoutCancel(inner.Context(t.Context()))
		go func() {
			_, err := l.Lock(ctx)
			innermost <- err
		}()
		synctest.Wait()
		require.Len(t, reentries, 2)
		time.AfterFunc(command-time.Second, func() { reentries[1].Ends(int64(1), nil) })
		began := time.Now()
		require.NoError(t, inner.Unlock(), "the count is corrected in the background")
		require.Equal(t, command, time.Since(began))
		<-innermost
	})
}

func TestUnlockOfSharedOwnerTakesOneCommandTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const command = 3 * time.Second
		var release *faketransport.SentCall
		tr := &faketransport.Fake{Answer: func(c *faketransport.SentCall) (any, error, bool) {
			if c.Name == "release_shared" {
				release = c
			}
			return nil, nil, c.Name == "acquire"
		}}
		client := clientOver(t, tr, redlatch.WithCommandTimeout(command))
		l, owner := rlock.New(client, "job"), codec.NewOwner(uuid.New(), 1)
		first, err := l.Lock(t.Context(), rlock.WithOwner(owner))
		require.NoError(t, err)
		began := time.Now()
		unlocked := make(chan error, 1)
		go func() { unlocked <- first.Unlock() }()
		synctest.Wait()
		_, err = l.Lock(t.Context(), rlock.WithOwner(owner), rlock.WithLease(time.Hour))
		require.NoError(t, err)
		time.Sleep(command - time.Second)
		release.Ends(int64(0), nil)
		require.NoError(t, <-unlocked)
		require.LessOrEqual(t, time.Since(began), command)
		synctest.Wait()
		require.Equal(t, "renew", tr.Last(t).Name, "the lease is still restored")
	})
}

// An unlock in doubt cannot run later once its connection has been killed.
func TestHandOverSucceedsAfterOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const command = 3 * time.Second
		var down atomic.Bool
		tr := &faketransport.Fencing{Fake: &faketransport.Fake{Conn: 7}}
		tr.Answer = func(c *faketransport.SentCall) (any, error, bool) {
			switch c.Name {
			case "acquire":
				return nil, nil, !down.Load()
			case "renew":
				return []any{int64(1)}, nil, !down.Load()
			}
			return int64(1), nil, !down.Load()
		}
		tr.Kill = func(ctx context.Context) error {
			if down.Load() {
				<-ctx.Done()
			}
			return ctx.Err()
		}
		l := rlock.New(clientOver(t, tr, redlatch.WithCommandTimeout(command)), "job")
		outer, err := l.Lock(t.Context())
		require.NoError(t, err)
		inner, err := l.Lock(outer.Context(t.Context()))
		require.NoError(t, err)

		down.Store(true)
		require.NoError(t, inner.Unlock(), "the count is corrected in the background")
		for _, c := range tr.Sent() {
			c.Ends(nil, transport.ErrUncertain)
		}
		time.Sleep(2 * command)
		_, err = outer.HandOver()
		require.ErrorIs(t, err, redlatch.ErrUncertain)
		down.Store(false)
		time.Sleep(2 * command)
		_, err = outer.HandOver()
		require.NoError(t, err)
	})
}

// outage returns a transport whose connections cannot be killed until the outage ends.
func outage() (tr *faketransport.Fencing, down *atomic.Bool) {
	down = new(atomic.Bool)
	down.Store(true)
	return &faketransport.Fencing{Fake: &faketransport.Fake{Conn: 7}, Kill: func(context.Context) error {
		if down.Load() {
			return transport.ErrNotSent
		}
		return nil
	}}, down
}

// The new owner may have a hold in the other role, which the release would end.
func TestHandOverRejectsPendingReleaseInOtherRole(t *testing.T) {
	for _, release := range []string{"read_release", "write_release"} {
		t.Run(release, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				lost := false
				tr, down := outage()
				tr.Answer = func(c *faketransport.SentCall) (any, error, bool) {
					switch {
					case c.Name == "write_acquire":
						return nil, nil, true
					case c.Name == release && !lost:
						lost = true
						return nil, transport.ErrUncertain, true
					case strings.HasSuffix(c.Name, "renew"):
						return []any{int64(1)}, nil, true
					}
					return int64(1), nil, true
				}
				rw := rreadwritelock.New(clientOver(t, tr), "job")
				w, err := rw.Write().Lock(t.Context())
				require.NoError(t, err)
				r, err := rw.Read().Lock(w.Context(t.Context()))
				require.NoError(t, err)
				gone, kept := r, w
				if release == "write_release" {
					gone, kept = w, r
				}
				require.NoError(t, gone.Unlock())
				require.True(t, lost)
				time.Sleep(5 * time.Second)
				_, err = kept.HandOver()
				require.ErrorIs(t, err, redlatch.ErrUncertain)
				require.NoError(t, kept.Err())
				down.Store(false)
				time.Sleep(5 * time.Second)
				_, err = kept.HandOver()
				require.NoError(t, err)
			})
		})
	}
}

// HandOver leaves a hold that has reached its maximum to Unlock.
func TestUnlockReleasesAfterMaximumDuringHandOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most = 2 * time.Second
		tr := &faketransport.Fake{}
		tr.Answer = func(c *faketransport.SentCall) (any, error, bool) {
			switch c.Name {
			case "acquire":
				return nil, nil, true
			case "renew":
				time.AfterFunc(most, func() { c.Ends([]any{int64(1)}, nil) })
				return nil, nil, false
			}
			return int64(1), nil, true
		}
		h, err := rlock.New(clientOver(t, tr), "job").Lock(t.Context(), rlock.WithMaxHold(most))
		require.NoError(t, err)
		time.Sleep(most / 2)
		_, err = h.HandOver()
		require.ErrorIs(t, err, redlatch.ErrMaxHold)
		require.ErrorIs(t, h.Unlock(), redlatch.ErrMaxHold)
		require.Equal(t, "release", tr.Last(t).Name)
	})
}

// The release lowers the count by one and may shorten the lease, or free the lock if it runs twice.
func TestLetExpireRejectsPendingReleaseOfSharedOwner(t *testing.T) {
	for _, failure := range []error{transport.ErrNotSent, transport.ErrUncertain} {
		t.Run(failure.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr, down := outage()
				tr.Answer = func(c *faketransport.SentCall) (any, error, bool) {
					switch {
					case c.Name == "acquire":
						return nil, nil, true
					case c.Name == "release_shared" && down.Load():
						return nil, failure, true
					}
					return int64(1), nil, true
				}
				l, owner := rlock.New(clientOver(t, tr), "job"), rlock.WithOwner(codec.NewOwner(uuid.New(), 1))
				outer, err := l.Lock(t.Context(), owner, rlock.WithLease(time.Hour))
				require.NoError(t, err)
				inner, err := l.Lock(outer.Context(t.Context()))
				require.NoError(t, err)
				require.ErrorIs(t, inner.Unlock(), failure)
				require.ErrorIs(t, outer.LetExpire(), redlatch.ErrUncertain)
				require.NoError(t, outer.Err())
				down.Store(false)
				time.Sleep(5 * time.Second)
				require.NoError(t, outer.LetExpire())
			})
		})
	}
}

func TestReleasesPrecedeAcquires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &faketransport.Fake{Answer: func(c *faketransport.SentCall) (any, error, bool) {
			switch {
			case strings.HasSuffix(c.Name, "acquire"):
				return nil, nil, true
			case strings.Contains(c.Name, "release"):
				return int64(1), nil, true
			}
			return nil, errNotReached, true
		}}
		client, err := redlatch.NewWithTransport(fake, redlatch.WithLabel(""))
		require.NoError(t, err)
		released := 0
		for _, l := range []*rlock.Lock{rlock.New(client, "plain"), rfairlock.New(client, "fair")} {
			hold, err := l.Lock(t.Context())
			require.NoError(t, err)
			require.NoError(t, hold.Unlock())
			_, err = l.ForceUnlock(t.Context())
			require.NoError(t, err)
		}
		require.NoError(t, client.Close())
		for _, c := range fake.Sent() {
			if strings.Contains(c.Name, "release") {
				released++
				require.True(t, c.Urgent, c.Name)
			}
		}
		require.Equal(t, 4, released)
	})
}

func TestRenewalUsesOwnersLongestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := &faketransport.Fake{Answer: func(c *faketransport.SentCall) (any, error, bool) {
			switch c.Name {
			case "acquire":
				return nil, nil, true
			case "renew":
				return []any{int64(1)}, nil, true
			}
			return int64(1), nil, true
		}}
		l := rlock.New(clientOver(t, tr), "job")
		outer, err := l.Lock(t.Context())
		require.NoError(t, err)
		for _, c := range []struct {
			opt  rlock.Option
			want time.Duration
		}{
			{rlock.WithLease(time.Hour), time.Hour - 10*time.Second},
			{rlock.WithWatchdog(time.Minute), time.Minute},
			{rlock.WithLease(12 * time.Second), 30 * time.Second},
		} {
			inner, err := l.Lock(outer.Context(t.Context()), c.opt)
			require.NoError(t, err)
			time.Sleep(10 * time.Second)
			synctest.Wait()
			require.Equal(t, "renew", tr.Last(t).Name)
			require.Equal(t, c.want.Milliseconds(), tr.Last(t).Call.Args[2])
			require.NoError(t, inner.Unlock())
			require.NoError(t, outer.Unlock())
			outer, err = l.Lock(t.Context())
			require.NoError(t, err)
		}
		require.NoError(t, outer.Unlock())
	})
}
