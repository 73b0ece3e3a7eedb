package rlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/internal/test/observed"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// checkLoss checks that an error is a loss for this reason only.
func checkLoss(t *testing.T, want redlatch.Loss, err error) {
	t.Helper()
	require.ErrorIs(t, err, redlatch.ErrLost)
	require.ErrorIs(t, err, want)
	var why redlatch.Loss
	require.ErrorAs(t, err, &why)
	require.Equal(t, want, why)
	require.ErrorContains(t, err, string(want))
}

func checkLost(ctx context.Context, t *testing.T, want redlatch.Loss, l *rlock.Lock, h *rlock.Hold) {
	t.Helper()
	checkLoss(t, want, h.Err())
	checkLoss(t, want, context.Cause(ctx))
	_, err := l.Lock(context.WithoutCancel(ctx))
	checkLoss(t, want, err)
	_, err = h.HandOver()
	checkLoss(t, want, err)
	checkLoss(t, want, h.LetExpire())
	checkLoss(t, want, h.Unlock())
}

func TestFixedLeaseLossReportsExpiry(t *testing.T) {
	eachKind(t, func(t *testing.T, s *scene) {
		t.Helper()
		hold := take(t, s.l, rlock.WithLease(10*time.Second))
		ctx := hold.Context(t.Context())
		time.Sleep(9 * time.Second)
		synctest.Wait()
		checkLost(ctx, t, redlatch.LossLeaseOver, s.l, hold)
	})
}

func TestLossReportsTakenOrDeletedLock(t *testing.T) {
	for how, take2 := range map[string]func(t *testing.T, s *scene){
		"deleted": func(t *testing.T, s *scene) { t.Helper(); s.srv.Do(t, "DEL", "lock") },
		"taken": func(t *testing.T, s *scene) {
			t.Helper()
			forced, err := s.other.ForceUnlock(t.Context())
			require.NoError(t, err)
			require.True(t, forced)
		},
		"replaced": func(t *testing.T, s *scene) { t.Helper(); s.srv.Do(t, "SET", "lock", "no lock") },
	} {
		t.Run(how, func(t *testing.T) {
			eachKind(t, func(t *testing.T, s *scene) {
				t.Helper()
				hold := take(t, s.l)
				ctx := hold.Context(t.Context())
				take2(t, s)
				time.Sleep(11 * time.Second)
				synctest.Wait()
				checkLost(ctx, t, redlatch.LossTaken, s.l, hold)
				s.srv.Do(t, "DEL", "lock")

				hold = take(t, s.l)
				take2(t, s)
				checkLoss(t, redlatch.LossTaken, hold.Unlock())
				s.srv.Do(t, "DEL", "lock")
				if how == "replaced" {
					return // a re-entry and a hand-over return ErrWrongType, and the hold continues
				}

				for _, find := range []func(h *rlock.Hold, ctx context.Context) error{
					func(_ *rlock.Hold, ctx context.Context) error { _, err := s.l.TryLock(ctx); return err },
					func(h *rlock.Hold, _ context.Context) error { _, err := h.HandOver(); return err },
				} {
					hold = take(t, s.l)
					ctx = hold.Context(t.Context())
					take2(t, s)
					checkLoss(t, redlatch.LossTaken, find(hold, context.WithoutCancel(ctx)))
					checkLost(ctx, t, redlatch.LossTaken, s.l, hold)
				}
			})
		})
	}
}

func TestLossReportsFailedRenewals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := &witness{}
		w, client := wired(t, 0, redlatch.WithObserver(observed.Outcomes(seen.see)))
		l := rlock.New(client, "job")
		hold := take(t, l)
		ctx := hold.Context(t.Context())
		seen.since()
		w.hole.Store(true)
		awaitClosed(t, ctx.Done(), 30*time.Second, "the loss")
		checkLost(ctx, t, redlatch.LossNotRenewed, l, hold)
		checkLoss(t, redlatch.LossNotRenewed, next[redlatch.Ended](t, seen).Err)
		checkLoss(t, redlatch.LossNotRenewed, next[redlatch.Released](t, seen).Err)
	})
}

func TestLossLongAfterReconnectReportsTakenLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, client := wired(t, 0)
		l := rlock.New(client, "job")
		hold := take(t, l)
		ctx := hold.Context(t.Context())
		time.Sleep(time.Second)
		w.reset()
		time.Sleep(25 * time.Second)
		w.srv.Do(t, "DEL", "job")
		awaitClosed(t, ctx.Done(), 10*time.Second, "the loss")
		checkLost(ctx, t, redlatch.LossTaken, l, hold)
	})
}

func TestDoReportsCauseOfItsContextOnce(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, srv *redistest.MiniServer){
		"deleted":          func(t *testing.T, srv *redistest.MiniServer) { t.Helper(); srv.Do(t, "DEL", "job") },
		"renewal rejected": func(_ *testing.T, srv *redistest.MiniServer) { srv.FailWith("LOADING the dataset") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv, client := inBubble(t)
				err := rlock.New(client, "job").Do(t.Context(), func(ctx context.Context) error {
					lose(t, srv)
					<-ctx.Done()
					return context.Cause(ctx)
				})
				require.ErrorIs(t, err, redlatch.ErrLost)
				require.Regexp(t, `^unlock "job": redlatch: lock lost: [^\n]+$`, err.Error())
			})
		})
	}
}
