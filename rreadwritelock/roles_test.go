package rreadwritelock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

func locked(t *testing.T, rw *rreadwritelock.Lock) (read, write bool) {
	t.Helper()
	read, err := rw.Read().IsLocked(within(t))
	require.NoError(t, err)
	write, err = rw.Write().IsLocked(within(t))
	require.NoError(t, err)
	return read, write
}

func TestReadersShareAndWriterExcludes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, one := inMemory(t)
		two := same(t, s, one)
		r1, r2, r3 := take(t, one.Read()), take(t, two.Read()), take(t, two.Read())
		refused(t, one.Write())
		refused(t, two.Write())
		read, write := locked(t, one)
		require.True(t, read)
		require.False(t, write)
		unlock(t, r2, r1)
		refused(t, one.Write())
		unlock(t, r3)
		w := take(t, one.Write())
		for _, l := range []*rlock.Lock{one.Write(), two.Write(), one.Read(), two.Read()} {
			refused(t, l)
			count, err := l.HoldCount(within(t), w.Owner())
			require.NoError(t, err)
			require.Equal(t, l == one.Write() || l == two.Write(), count == 1)
		}
		read, write = locked(t, two)
		require.False(t, read)
		require.True(t, write)
		unlock(t, w)
		free(t, s, one)
	})
}

func TestWriterAndReadUnlockInEitherOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		other := same(t, s, rw)
		w := take(t, rw.Write())
		r := enter(t, rw.Read(), w)
		require.Equal(t, w.Owner(), r.Owner())
		again := enter(t, rw.Read(), r)
		require.Equal(t, w.Owner(), again.Owner())
		count, err := rw.Read().HoldCount(within(t), w.Owner())
		require.NoError(t, err)
		require.EqualValues(t, 2, count)
		unlock(t, again, r)
		refused(t, other.Read())
		r = enter(t, rw.Read(), w)
		w2 := enter(t, rw.Write(), r)
		require.Equal(t, w.Owner(), w2.Owner())
		count, err = rw.Write().HoldCount(within(t), w.Owner())
		require.NoError(t, err)
		require.EqualValues(t, 2, count)
		unlock(t, w2, w)
		shared := take(t, other.Read())
		refused(t, other.Write())
		_, err = rw.Write().Lock(r.Context(within(t)))
		require.ErrorIs(t, err, redlatch.ErrInvalid, "it only reads")
		unlock(t, shared, r)
		free(t, s, rw)
	})
}

func TestReaderUpgradeFailsImmediately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		r := take(t, rw.Read())
		for _, opts := range [][]rlock.Option{nil, {rlock.WithWait(time.Minute)}} {
			_, err := rw.Write().Lock(r.Context(within(t)), opts...)
			require.ErrorIs(t, err, redlatch.ErrInvalid)
			require.ErrorContains(t, err, "cannot upgrade a read hold")
		}
		_, err := rw.Write().TryLock(r.Context(within(t)))
		require.ErrorIs(t, err, redlatch.ErrInvalid)
		ctx := r.Context(t.Context())
		unlock(t, r)
		_, err = rw.Write().Lock(ctx)
		require.ErrorIs(t, err, redlatch.ErrNotSent, "the context ended with the hold")
		free(t, s, rw)
	})
}

func TestReadersOfOneContextShareLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		r := take(t, rw.Read())
		var inner []*rlock.Hold
		for range 3 {
			inner = append(inner, enter(t, rw.Read(), r))
		}
		unlock(t, r)
		refused(t, rw.Write())
		unlock(t, inner...)
		free(t, s, rw)
	})
}

func TestDowngradeAdmitsWaitingReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		other := same(t, s, rw)
		w := take(t, rw.Write())
		r := enter(t, rw.Read(), w)
		var came []<-chan acquired
		for range 5 {
			came = append(came, later(within(t), other.Read()), later(within(t), rw.Read()))
		}
		synctest.Wait()
		unlock(t, w)
		for _, c := range came {
			unlock(t, must(t, c, 3*time.Second))
		}
		unlock(t, r)
		free(t, s, rw)
	})
}

func TestResumedOwnerKeepsBothRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		other := same(t, s, rw)
		owner, err := take(t, rw.Write()).HandOver()
		require.NoError(t, err)
		w, err := other.Write().Resume(within(t), owner)
		require.NoError(t, err)
		r := enter(t, other.Read(), w)
		require.Equal(t, owner, r.Owner())
		unlock(t, w)
		refused(t, rw.Write())
		owner, err = r.HandOver()
		require.NoError(t, err)
		require.NoError(t, rw.Read().UnlockAs(within(t), owner))
		require.ErrorIs(t, rw.Read().UnlockAs(within(t), owner), redlatch.ErrNotHeld)
		require.ErrorIs(t, rw.Write().UnlockAs(within(t), owner), redlatch.ErrNotHeld)
		require.Eventually(t, func() bool { return s.Do(t, "EXISTS", rw.Name()) == any(int64(0)) }, soon, time.Millisecond)
		given := codec.NewOwner(uuid.New(), 7)
		w = take(t, rw.Write(), rlock.WithOwner(given))
		r = take(t, other.Read(), rlock.WithOwner(given))
		unlock(t, r, w)
		free(t, s, rw)
	})
}

func TestHandOverRejectsHoldWithTwoRoles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		w := take(t, rw.Write())
		r := enter(t, rw.Read(), w)
		_, err := w.HandOver()
		require.ErrorIs(t, err, redlatch.ErrReentered)
		_, err = r.HandOver()
		require.ErrorIs(t, err, redlatch.ErrReentered)
		unlock(t, w, r)
		free(t, s, rw)
	})
}

func TestForceUnlockAffectsOneRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, rw := inMemory(t)
		for _, l := range []struct{ held, other *rlock.Lock }{{rw.Read(), rw.Write()}, {rw.Write(), rw.Read()}} {
			h := take(t, l.held)
			forced, err := l.other.ForceUnlock(within(t))
			require.NoError(t, err)
			require.False(t, forced)
			forced, err = l.held.ForceUnlock(within(t))
			require.NoError(t, err)
			require.True(t, forced)
			require.ErrorIs(t, h.Unlock(), redlatch.ErrLost)
		}
	})
}
