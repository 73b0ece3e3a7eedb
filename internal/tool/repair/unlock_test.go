package repair

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/inspect"
)

// targetOf returns a server as the commands use it.
func targetOf(t *testing.T, s redistest.Target) Target {
	t.Helper()
	dial := func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", s.Addr()) }
	if mini, is := s.(*redistest.MiniServer); is {
		dial = mini.Server.Dial
	}
	client, err := redlatch.New(dial, redlatch.WithServerTime())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return Target{Client: client, Dial: dial}
}

func TestUnlockChecksAgainBeforeRemoving(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		target := targetOf(t, s)
		for why, change := range map[string]func(name string){
			"has changed hands": func(name string) {
				s.Do(t, "DEL", name)
				s.Do(t, "HSET", name, "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:1", 1)
			},
			"its lease was renewed just now": func(name string) { s.Do(t, "PEXPIRE", name, time.Hour.Milliseconds()) },
			"it has several owners":          func(name string) { s.Do(t, "HSET", name, "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:1", 1) },
		} {
			name := program.HeldBy(t, s, program.RedissonOwner, time.Minute)
			u := &Unlock{Target: target, Name: name, Dead: []string{program.RedissonOwner}}
			seen, err := u.look(t.Context())
			require.NoError(t, err)
			change(name)
			err = u.take(t.Context(), seen)
			require.ErrorContains(t, err, why)
			require.True(t, program.Exists(t, s, name))
		}
	})
}

func TestUnlockOfReleasedLockRemovesNoNewHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		name := program.HeldBy(t, s, program.RedissonOwner, time.Minute)
		u := &Unlock{Target: targetOf(t, s), Name: name, Dead: []string{program.RedissonOwner}, For: 100 * time.Millisecond}
		u.Confirm = func(*Forced) bool { s.Do(t, "DEL", name); return true }
		u.Takes = func() { s.Do(t, "HSET", name, "mode", "read", program.RedissonOwner, 1, program.SomeOwner, 1) }
		f, err := u.Run(t.Context())
		require.True(t, IsFree(err))
		require.False(t, f.Tried, "a command was sent although the lock was free")
	})
}

func TestUnlockLeavesHashThatIsNoLongerALock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		name := program.HeldBy(t, s, program.RedissonOwner, time.Minute)
		u := &Unlock{Target: targetOf(t, s), Name: name, Dead: []string{program.RedissonOwner}, For: 100 * time.Millisecond}
		u.Looks = func(time.Duration) { s.Do(t, "HSET", name, "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:1", 1) }
		f, err := u.Run(t.Context())
		require.ErrorContains(t, err, "it has several owners")
		require.Equal(t, RefusedKind, f.Refused)
		require.EqualValues(t, 2, s.Do(t, "HLEN", name))
	})
}

func TestUnlockKeepsChangedLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		target := targetOf(t, s)
		for _, c := range []struct {
			shown []string
			why   string
		}{
			{[]string{program.RedlatchOwner}, RefusedChanged},
			{[]string{program.RedissonOwner, program.RedlatchOwner}, RefusedChanged},
			{[]string{program.RedissonOwner}, ""},
			{[]string{program.RedissonOwner}, RefusedFree},
		} {
			name := redistest.Key(t)
			if c.why != RefusedFree {
				s.Do(t, "HSET", name, program.RedissonOwner, 1)
			}
			u := &Unlock{Target: target, Name: name, Dead: c.shown, Strict: true, For: inspect.RenewalLook}
			f, err := u.Run(t.Context())
			require.Equal(t, c.why, f.Refused, "%v", c.shown)
			require.Equal(t, c.why == "", f.Taken)
			require.Equal(t, c.why != "", err != nil)
			require.Equal(t, c.why == RefusedFree, IsFree(err))
			require.Equal(t, c.why == RefusedChanged, program.Exists(t, s, name))
		}
	})
}

func TestEvictChecksTwiceAndReportsReason(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		target := targetOf(t, s)
		evict := func(name, owner string, absent time.Duration) string {
			t.Helper()
			_, err := (&Evict{Target: target, Name: name, Owner: owner, Absent: absent}).Run(t.Context())
			if err == nil {
				return ""
			}
			var r *Refusal
			require.ErrorAs(t, err, &r)
			return r.Why
		}
		name := redistest.Key(t)
		program.Enqueue(t, s, name, program.RedissonOwner, time.Hour)
		require.Equal(t, RefusedAbsent, evict(name, program.RedlatchOwner, 0))
		comes := time.AfterFunc(500*time.Millisecond, func() { program.Listen(t, s, name, program.RedissonOwner) })
		defer comes.Stop()
		require.Equal(t, RefusedAlive, evict(name, program.RedissonOwner, 6*time.Second), "it came back between the looks")
		require.Equal(t, RefusedAlive, evict(name, program.RedissonOwner, time.Minute), "and at the first look")
		other := redistest.Key(t)
		program.Enqueue(t, s, other, program.RedissonOwner, time.Hour)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := (&Evict{Target: target, Name: other, Owner: program.RedissonOwner, Absent: time.Minute}).Run(ctx)
		require.Error(t, err)
		require.Empty(t, evict(other, program.RedissonOwner, 10*time.Millisecond))
		require.Empty(t, program.QueueOf(t, s, other))
	})
}

func TestUnlockShownKeepsLongLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		name := program.HeldBy(t, s, program.RedissonOwner, time.Hour)
		u := &Unlock{Target: targetOf(t, s), Name: name, Dead: []string{program.RedissonOwner}, Strict: true, For: 100 * time.Millisecond}
		f, err := u.Run(t.Context())
		require.ErrorContains(t, err, "a lease too long to tell within 100ms whether it is renewed")
		require.Equal(t, RefusedUnknown, f.Refused)
		require.True(t, program.Exists(t, s, name))
		u.Strict = false
		f, err = u.Run(t.Context())
		require.NoError(t, err)
		require.True(t, f.Taken)
	})
}

func TestMain(m *testing.M) { redistest.Main(m) }

// The web page reports a canceled request in a different way.
func TestCanceledLookReportsCancellation(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	go func() {
		_, _ = theirs.Read(make([]byte, 1024)) // but does not answer
		cancel()
	}()
	e := Evict{Name: "job", Owner: "a:1", Absent: AbsentFor}
	e.Dial = func(context.Context) (redis.Conn, error) { return redis.NewConn(ours, 0, 0), nil }
	_, err := e.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
