package rreadwritelock_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

func TestInspectReportsReadersAndWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rw := inMemory(t)
		in, err := admin.Inspect(within(t), rw.Read())
		require.NoError(t, err)
		require.Equal(t, admin.Inspection{Name: rw.Name(), Kind: "read"}, *in)

		short, long := take(t, rw.Read(), rlock.WithLease(20*time.Second)), take(t, same(t, s, rw).Read(), rlock.WithLease(time.Minute))
		for _, l := range []*rlock.Lock{rw.Read(), rw.Write()} {
			in, err = admin.Inspect(within(t), l)
			require.NoError(t, err)
			require.Equal(t, "read", in.Mode)
			require.Empty(t, in.OtherKind)
			require.Equal(t, time.Minute, in.TTL)
			left := map[codec.Owner]time.Duration{}
			for _, h := range in.Holders {
				require.Equal(t, "read", h.Role)
				require.EqualValues(t, 1, h.Count)
				left[h.Owner] = h.Left
			}
			require.Equal(t, map[codec.Owner]time.Duration{short.Owner(): 20 * time.Second, long.Owner(): time.Minute}, left)
		}
		unlock(t, short, long)

		w := take(t, rw.Write())
		r := enter(t, rw.Read(), w)
		in, err = admin.Inspect(within(t), rw.Write())
		require.NoError(t, err)
		require.Equal(t, "write", in.Mode)
		roles := map[string]codec.Owner{}
		for _, h := range in.Holders {
			roles[h.Role] = h.Owner
		}
		require.Equal(t, map[string]codec.Owner{"read": w.Owner(), "write": w.Owner()}, roles)
		_, err = same(t, s, rw).Read().TryLock(within(t))
		var refusal *redlatch.LockError
		require.ErrorAs(t, err, &refusal)
		require.Equal(t, w.Owner(), refusal.Holder, "the error reports the writer")
		unlock(t, r, w)
		free(t, s, rw)
	})
}

func TestInspectReportsMismatchedKind(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	client := connect(t, s.URL())
	name := redistest.Key(t)
	rw, plain := rreadwritelock.New(client, name), rlock.New(client, name)

	h := take(t, plain)
	for _, l := range []*rlock.Lock{rw.Read(), rw.Write()} {
		_, err := l.Lock(within(t))
		require.ErrorIs(t, err, redlatch.ErrWrongType)
		require.ErrorContains(t, err, "read/write lock")
		in, err := admin.Inspect(within(t), l)
		require.NoError(t, err)
		require.Equal(t, "plain", in.OtherKind)
		require.Empty(t, in.Holders[0].Role)
		_, err = l.IsLocked(within(t))
		require.ErrorIs(t, err, redlatch.ErrWrongType)
		require.ErrorContains(t, err, "read/write lock")
		other := codec.NewOwner(client.ID(), 99)
		_, err = l.Resume(within(t), other)
		require.ErrorIs(t, err, redlatch.ErrNotHeld)
		require.ErrorIs(t, l.UnlockAs(within(t), other), redlatch.ErrNotHeld)
		forced, err := l.ForceUnlock(within(t))
		require.NoError(t, err)
		require.False(t, forced)
	}
	unlock(t, h)

	for _, l := range []*rlock.Lock{rw.Read(), rw.Write()} {
		h = take(t, l)
		for _, other := range []*rlock.Lock{plain, rfairlock.New(client, name)} {
			_, err := other.Lock(within(t))
			require.ErrorIs(t, err, redlatch.ErrWrongType)
			require.ErrorContains(t, err, "it is a read/write lock")
			_, err = other.TryLock(within(t))
			require.ErrorIs(t, err, redlatch.ErrWrongType)
		}
		_, err := rfencedlock.New(client, name).TryLock(within(t))
		require.ErrorIs(t, err, redlatch.ErrWrongType)
		_, err = rmultilock.New(client, name+"other", name).TryLock(within(t))
		require.ErrorIs(t, err, redlatch.ErrWrongType)
		in, err := admin.Inspect(within(t), plain)
		require.NoError(t, err)
		require.Equal(t, "read-write", in.OtherKind)
		unlock(t, h)
	}
	free(t, s, rw)
}

func TestInspectRejectsUnknownMode(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	client, name := connect(t, s.URL()), redistest.Key(t)
	rw := rreadwritelock.New(client, name)
	s.Do(t, "HSET", name, protocol.ModeField, "odd", "a", "1")
	for _, l := range []*rlock.Lock{rw.Read(), rw.Write(), rlock.New(client, name)} {
		in, err := admin.Inspect(within(t), l)
		require.NoError(t, err)
		require.Equal(t, "unknown", in.OtherKind)
		require.Empty(t, in.Mode)
		require.Len(t, in.Holders, 2)
		for _, h := range in.Holders {
			require.Empty(t, h.Role)
		}
	}
}

func TestForeignKeysRejectedAndKept(t *testing.T) {
	t.Parallel()
	s := redistest.Shared(t)
	rw := newLock(t, s)
	for _, c := range []struct {
		cmd  string
		args []any
	}{
		{"SET", []any{"no lock"}}, {"HSET", []any{"colour", "red"}}, {"HSET", []any{"mode", "fast", "colour", "red"}}, {"RPUSH", []any{"x"}},
	} {
		s.Do(t, "DEL", rw.Name())
		s.Do(t, c.cmd, append([]any{rw.Name()}, c.args...)...)
		dump := s.Do(t, "DUMP", rw.Name())
		for _, l := range []*rlock.Lock{rw.Read(), rw.Write()} {
			_, err := l.Lock(within(t))
			require.ErrorIs(t, err, redlatch.ErrWrongType)
			_, err = l.TryLock(within(t))
			require.ErrorIs(t, err, redlatch.ErrWrongType)
			_, err = l.IsLocked(within(t))
			require.ErrorIs(t, err, redlatch.ErrWrongType)
			_, err = l.Lock(within(t), rlock.WithWait(-time.Second))
			require.ErrorIs(t, err, redlatch.ErrInvalid)
		}
		isHash := c.cmd == "HSET"
		for _, l := range []*rlock.Lock{rw.Read(), rw.Write()} {
			// These calls do not check the kind of a hash.
			forced, err := l.ForceUnlock(within(t))
			require.False(t, forced)
			require.Equal(t, isHash, err == nil, "%v: %v", c.cmd, err)
			owner := codec.NewOwner(uuid.Max, 1)
			if unlocked := l.UnlockAs(within(t), owner); isHash {
				require.ErrorIs(t, unlocked, redlatch.ErrNotHeld)
			} else {
				require.ErrorIs(t, err, redlatch.ErrWrongType)
				require.ErrorIs(t, unlocked, redlatch.ErrWrongType)
			}
			_, err = l.Resume(within(t), owner)
			require.ErrorIs(t, err, redlatch.ErrNotHeld)
		}
		require.Equal(t, dump, s.Do(t, "DUMP", rw.Name()))
	}
	s.Do(t, "DEL", rw.Name())
	// A lock without a time to live is held forever.
	s.Do(t, "HSET", rw.Name(), protocol.ModeField, protocol.ModeWrite, "11111111-1111-4111-8111-111111111111:7:write", "1")
	_, err := rw.Read().Lock(within(t), rlock.WithWait(100*time.Millisecond))
	require.ErrorIs(t, err, redlatch.ErrNotAcquired)
	var refusal *redlatch.LockError
	require.ErrorAs(t, err, &refusal)
	require.Equal(t, redlatch.NoTTL, refusal.TTL)
	require.ErrorContains(t, err, "(the lease of 11111111-1111-4111-8111-111111111111:7 never expires)")
	ttl, err := rw.Write().TTL(within(t))
	require.NoError(t, err)
	require.Equal(t, redlatch.NoTTL, ttl)
	forced, err := rw.Write().ForceUnlock(within(t))
	require.NoError(t, err)
	require.True(t, forced)
	unlock(t, take(t, rw.Read()))
}

// Inspecting another program's hash, whose fields are large numbers, must not block the server.
func TestForeignHashNotReadAsHolds(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	rw := newLock(t, s, redlatch.WithCommandTimeout(time.Minute))
	args := []any{rw.Name()}
	for i := range 1000 {
		args = append(args, "user:"+strconv.Itoa(i), 1_700_000_000_000+i)
	}
	s.Do(t, "HSET", args...)
	_, err := rw.Read().IsLocked(within(t))
	require.ErrorIs(t, err, redlatch.ErrWrongType)
}
