package repair

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/program"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
)

const thirdOwner = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:58"

func holdKey(name, owner string, n int) string {
	return fmt.Sprintf("{%s}:%s:rwlock_timeout:%d", name, owner, n)
}

func readBy(t *testing.T, s redistest.Target, name, owner string, count int, lease time.Duration) {
	t.Helper()
	s.Do(t, "HSETNX", name, "mode", "read")
	s.Do(t, "HSET", name, owner, count)
	for n := range count {
		s.Do(t, "SET", holdKey(name, owner, n+1), 1, "PX", lease.Milliseconds())
	}
	if left, _ := s.Do(t, "PTTL", name).(int64); left < lease.Milliseconds() {
		s.Do(t, "PEXPIRE", name, lease.Milliseconds())
	}
}

func busyTarget(t *testing.T, s redistest.Target, change func(look int)) Target {
	t.Helper()
	target := targetOf(t, s)
	dial, looks := target.Dial, 0
	target.Dial = func(ctx context.Context) (redis.Conn, error) {
		change(looks)
		looks++
		return dial(ctx)
	}
	return target
}

func TestUnlockRemovesDeadReaderOfBusyLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		name := redistest.Key(t)
		readBy(t, s, name, program.RedissonOwner, 2, time.Hour)
		readBy(t, s, name, program.SomeOwner, 1, time.Hour)
		last := ""
		target := busyTarget(t, s, func(look int) {
			if last != "" {
				s.Do(t, "HDEL", name, last)
			}
			last = program.LongOwner(look)
			readBy(t, s, name, last, 1, 2*time.Hour)
			s.Do(t, "PEXPIRE", name, 3*time.Hour.Milliseconds())
		})
		u := &Unlock{Target: target, Name: name, Dead: []string{program.RedissonOwner}, For: 100 * time.Millisecond}
		f, err := u.Run(t.Context())
		require.NoError(t, err)
		require.True(t, f.Taken)
		require.Equal(t, []string{program.RedissonOwner}, f.TakenFrom)
		require.Equal(t, notifiedNone, f.Notified)
		require.EqualValues(t, 0, s.Do(t, "HEXISTS", name, program.RedissonOwner))
		require.EqualValues(t, 0, s.Do(t, "EXISTS", holdKey(name, program.RedissonOwner, 1), holdKey(name, program.RedissonOwner, 2)))
		require.Equal(t, map[string]string{"mode": "read", program.SomeOwner: "1", last: "1"}, hashOf(t, s, name), "a live reader has lost the lock")
		require.EqualValues(t, 2, s.Do(t, "EXISTS", holdKey(name, last, 1), holdKey(name, program.SomeOwner, 1)))
	})
}

func TestUnlockJudgesEachReaderByItsOwnLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		target := targetOf(t, s)
		renews := func(name string) { s.Do(t, "PEXPIRE", holdKey(name, program.SomeOwner, 1), 2*time.Hour.Milliseconds()) }
		for name, c := range map[string]struct {
			change func(name string)
			dead   []string
			why    string
			says   string
		}{
			"renews":     {renews, []string{program.SomeOwner}, RefusedAlive, program.SomeOwner + " is alive, its lease was renewed just now. A reader of Redisson before 4.4 also renews"},
			"enters":     {func(name string) { s.Do(t, "HSET", name, program.SomeOwner, 2) }, []string{program.SomeOwner}, RefusedChanged, "the hold of " + program.SomeOwner + " has changed"},
			"leaves":     {func(name string) { s.Do(t, "HDEL", name, program.SomeOwner) }, []string{program.SomeOwner}, RefusedChanged, "the hold of " + program.SomeOwner + " has changed"},
			"one of two": {renews, []string{program.SomeOwner, program.RedissonOwner}, RefusedAlive, program.SomeOwner + " is alive"},
			"unstated":   {renews, nil, RefusedUnknown, "its holder " + program.RedissonOwner + " is not known to be dead"},
		} {
			readBy(t, s, name, program.SomeOwner, 1, time.Hour)
			readBy(t, s, name, program.RedissonOwner, 1, time.Hour)
			u := &Unlock{Target: target, Name: name, Dead: c.dead, For: 100 * time.Millisecond}
			u.Looks = func(time.Duration) { c.change(name) }
			f, err := u.Run(t.Context())
			require.ErrorContains(t, err, c.says)
			require.Equal(t, c.why, f.Refused)
			require.EqualValues(t, 1, s.Do(t, "HEXISTS", name, program.RedissonOwner))
		}
	})
}

func TestUnlockKeepsReaderWithUnknownLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		full := errors.New("max number of clients reached")
		for name, c := range map[string]struct {
			count  int
			refuse int // the look that cannot connect
			says   string
		}{
			"more holds than are looked at": {65, 9, "whether " + program.RedissonOwner + " is alive is unknown: its own lease cannot be read"},
			"no connection":                 {1, 0, full.Error()},
			"no second connection":          {1, 1, full.Error()},
		} {
			readBy(t, s, name, program.RedissonOwner, c.count, time.Hour)
			target := targetOf(t, s)
			dial, looks := target.Dial, -2 // the first look checks the name
			target.Dial = func(ctx context.Context) (redis.Conn, error) {
				if looks++; looks == c.refuse {
					return nil, full
				}
				return dial(ctx)
			}
			u := &Unlock{Target: target, Name: name, Dead: []string{program.RedissonOwner}, For: 100 * time.Millisecond}
			u.Confirm = func(*Forced) bool { t.Error("queried although rejected"); return false }
			_, err := u.Run(t.Context())
			require.ErrorContains(t, err, c.says)
			require.EqualValues(t, 1, s.Do(t, "HEXISTS", name, program.RedissonOwner))
		}
	})
}

func TestUnlockKeepsReaderWithUnreadableFinalLease(t *testing.T) {
	t.Parallel()
	first, last := readerLook(time.Minute), readerLook(time.Minute)
	u := &Unlock{Dead: []string{"reader"}}
	u.judge(first)
	last.unread = []string{"reader"}
	_, err := u.takeable(first, last)
	require.ErrorContains(t, err, "whether reader is alive is unknown")
}

func readerLook(left time.Duration) *look {
	ms := left.Milliseconds()
	return &look{Forced: &Forced{Holders: []inspect.Holder{{Owner: "reader", Mode: "read", LeftMillis: &ms}}}}
}

func TestRenewalSeenDespiteSlowConnect(t *testing.T) {
	t.Parallel()
	first, second := readerLook(2*time.Second), readerLook(1600*time.Millisecond)
	(&Unlock{}).judge(first)
	second.asked, second.leases = first.answered.Add(100*time.Millisecond), first.answered.Add(900*time.Millisecond)
	second.compare(first)
	require.Equal(t, inspect.RenewedYes, second.judged[0].renewed)
}

func TestLookLastsUntilServerWasQueried(t *testing.T) {
	t.Parallel()
	first, second := readerLook(30*time.Second), readerLook(20*time.Second)
	first.answered = time.Now().Add(-time.Hour)
	(&Unlock{}).judge(first)
	second.asked = first.answered.Add(10 * time.Second) // the reply came 50 minutes later
	second.leases = second.asked
	second.compare(first)
	require.Equal(t, time.Second, second.pause(first, time.Minute))
	require.Empty(t, second.judged[0].renewed)
	second.asked = first.answered.Add(11 * time.Second)
	require.Zero(t, second.pause(first, time.Minute))
	require.Equal(t, inspect.RenewedNo, second.judged[0].renewed)
}

func TestUnlockRemovesLiveReaderOnlyWhenNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		name := redistest.Key(t)
		readBy(t, s, name, program.SomeOwner, 1, time.Hour)
		readBy(t, s, name, program.RedissonOwner, 1, time.Hour)
		u := &Unlock{Target: targetOf(t, s), Name: name, Owners: []string{program.SomeOwner}, For: 100 * time.Millisecond}
		f, err := u.Run(t.Context())
		require.ErrorContains(t, err, "its holder "+program.SomeOwner+" is not known to be dead")
		require.Equal(t, RefusedUnknown, f.Refused)
		require.Len(t, f.Losers(), 1)
		u.EvenIfAlive = true
		_, err = u.Run(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[string]string{"mode": "read", program.RedissonOwner: "1"}, hashOf(t, s, name))
	})
}

func hashOf(t *testing.T, s redistest.Target, name string) map[string]string {
	t.Helper()
	fields, err := redis.StringMap(s.Do(t, "HGETALL", name), nil)
	require.NoError(t, err)
	return fields
}

// traces returns the keys of a lock with their TTLs in minutes, the fields of its hash, and the
// messages that were published.
func traces(t *testing.T, s redistest.Target, name string, messages redis.PubSubConn) map[string]string {
	t.Helper()
	all := map[string]string{}
	keys, err := redis.Strings(s.Do(t, "KEYS", "*"+name+"*"), nil)
	require.NoError(t, err)
	for _, key := range keys {
		if strings.HasPrefix(key, protocol.LatchKey(name, "")) { // UnlockAs deletes it in the background
			continue
		}
		left, _ := s.Do(t, "PTTL", key).(int64)
		all[key] = fmt.Sprint((left + 59_000) / 60_000)
	}
	for field, value := range hashOf(t, s, name) {
		all["field "+field] = value
	}
	require.NoError(t, messages.PUnsubscribe())
	for i := 0; ; {
		switch m := messages.Receive().(type) {
		case redis.Message:
			all[fmt.Sprint("message ", i, " ", m.Channel)] = string(m.Data)
			i++
		case redis.Subscription:
			if m.Kind == "punsubscribe" {
				return all
			}
		case error:
			t.Fatal(m)
		}
	}
}

// UnlockAs must have the same effects as Redisson's unlock.
func TestForcedReleaseEqualsOwnersUnlock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, compareReleases)
}

func compareReleases(t *testing.T) {
	s := redistest.Mini(t, embedded.WithInProcess())
	target := targetOf(t, s)
	readLock := func(name string) *rlock.Lock { return rreadwritelock.New(target.Client, name).Read() }
	writeLock := func(name string) *rlock.Lock { return rreadwritelock.New(target.Client, name).Write() }
	owner, err := codec.ParseOwner(program.RedissonOwner)
	require.NoError(t, err)
	for what, c := range map[string]struct {
		set   func(name string)
		locks []func(name string) *rlock.Lock // to unlock by hand
	}{
		"last reader": {func(name string) { readBy(t, s, name, program.RedissonOwner, 1, time.Hour) }, []func(string) *rlock.Lock{readLock}},
		"reader with two holds next to others": {func(name string) {
			readBy(t, s, name, program.RedissonOwner, 2, 3*time.Hour)
			readBy(t, s, name, program.SomeOwner, 1, time.Hour)
			readBy(t, s, name, thirdOwner, 2, 2*time.Hour)
		}, []func(string) *rlock.Lock{readLock, readLock}},
		"reader next to an expired reader": {func(name string) {
			readBy(t, s, name, program.RedissonOwner, 1, time.Hour)
			s.Do(t, "HSET", name, thirdOwner, 1)
		}, []func(string) *rlock.Lock{readLock}},
		"writer that reads": {func(name string) {
			readBy(t, s, name, program.RedissonOwner, 1, time.Hour)
			s.Do(t, "HSET", name, "mode", "write", program.RedissonOwner+":write", 1)
		}, []func(string) *rlock.Lock{readLock, writeLock}},
		"plain": {func(name string) {
			s.Do(t, "HSET", name, program.RedissonOwner, 2)
			s.Do(t, "PEXPIRE", name, time.Hour.Milliseconds())
		}, []func(string) *rlock.Lock{
			func(name string) *rlock.Lock { return rlock.New(target.Client, name) },
			func(name string) *rlock.Lock { return rlock.New(target.Client, name) },
		}},
		"fair": {func(name string) {
			s.Do(t, "HSET", name, program.RedissonOwner, 1)
			s.Do(t, "PEXPIRE", name, time.Hour.Milliseconds())
			program.Enqueue(t, s, name, program.SomeOwner, time.Hour)
		}, []func(string) *rlock.Lock{func(name string) *rlock.Lock { return rfairlock.New(target.Client, name) }}},
	} {
		const name = "lock" // the keys and messages that are compared contain it
		var left [2]map[string]string
		for i := range left {
			s.Do(t, "FLUSHALL")
			c.set(name)
			messages := redis.PubSubConn{Conn: s.Dial(t)}
			require.NoError(t, messages.PSubscribe("*"+name+"*"))
			require.IsType(t, redis.Subscription{}, messages.Receive())
			if i == 0 {
				for _, lock := range c.locks {
					require.NoError(t, lock(name).UnlockAs(t.Context(), owner))
				}
			} else {
				u := &Unlock{Target: target, Name: name, Dead: []string{program.RedissonOwner}, For: time.Millisecond}
				_, err := u.Run(t.Context())
				require.NoError(t, err)
			}
			synctest.Wait() // for messages that the server has not delivered yet
			left[i] = traces(t, s, name, messages)
			require.NotEmpty(t, left[i], what)
		}
		require.Equal(t, left[0], left[1], what)
	}
}

func TestUnlockReportsPermitsReleasedBeforeFailure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		name := redistest.Key(t)
		s.Do(t, "SET", name, math.MaxInt64-1)
		s.Do(t, "ZADD", protocol.PermitsKey(name), protocol.PermitForever, "a", protocol.PermitForever, "b")
		u := &Unlock{Target: targetOf(t, s), Name: name, Owners: []string{"61", "62"}, EvenIfAlive: true}
		f, err := u.Run(t.Context())
		require.ErrorContains(t, err, `semaphore "`+name+`": 61 was removed, but not 62: `)
		require.Equal(t, []string{"61"}, f.TakenFrom)
		require.True(t, f.Tried)
		require.False(t, f.Taken)
	})
}

func TestUnlockReleasesOnePermit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := redistest.Mini(t, embedded.WithInProcess())
		target := targetOf(t, s)
		name := redistest.Key(t)
		ends := time.Now().Add(time.Hour).UnixMilli()
		s.Do(t, "SET", name, 0)
		s.Do(t, "ZADD", protocol.PermitsKey(name), ends, "0123456789abcdef", ends, "fedcba9876543210", protocol.PermitForever, "0000000000000000", ends, "by hand, and long", ends, "x", ends, "")
		const id, forever = "30313233343536373839616263646566", "30303030303030303030303030303030"
		for what, c := range map[string]struct {
			u    Unlock
			why  string
			says string
		}{
			"no id":       {Unlock{EvenIfAlive: true}, RefusedKind, "is a number, not a lock: release a semaphore's permit by its ID"},
			"another id":  {Unlock{Dead: []string{id[2:] + "00"}}, RefusedOther, "no held permit has the ID " + id[2:] + "00"},
			"too long":    {Unlock{Dead: []string{id + "0"}}, RefusedOther, "no held permit has the ID " + id + "0"},
			"bad digits":  {Unlock{Dead: []string{id + "zz"}, EvenIfAlive: true}, RefusedOther, "no held permit has the ID " + id + "zz"},
			"empty":       {Unlock{Dead: []string{""}}, RefusedOther, "no held permit has the ID"},
			"no hex":      {Unlock{Dead: []string{"permit"}}, RefusedOther, "no held permit has the ID permit"},
			"not stated":  {Unlock{Owners: []string{id}}, RefusedUnknown, "not known to be dead: it was not watched long enough"},
			"never ends":  {Unlock{Owners: []string{forever}}, RefusedUnknown, "its lease never ends"},
			"is renewed":  {Unlock{Dead: []string{id}, Looks: func(time.Duration) { s.Do(t, "ZADD", protocol.PermitsKey(name), 2*ends, "0123456789abcdef") }}, RefusedAlive, "its holder is alive"},
			"is released": {Unlock{Dead: []string{"66656463626139383736353433323130"}, Looks: func(time.Duration) { s.Do(t, "ZREM", protocol.PermitsKey(name), "fedcba9876543210") }}, RefusedChanged, "has changed"},
		} {
			c.u.Target, c.u.Name, c.u.For = target, name, 10*time.Millisecond
			f, err := c.u.Run(t.Context())
			require.ErrorContains(t, err, c.says, what)
			require.Equal(t, c.why, f.Refused, what)
		}
		messages := redis.PubSubConn{Conn: s.Dial(t)}
		require.NoError(t, messages.Subscribe(protocol.SemaphoreChannel(name)))
		require.IsType(t, redis.Subscription{}, messages.Receive())
		for i, id := range []string{"0123456789abcdef", "by hand, and long", "x"} {
			digits := hex.EncodeToString([]byte(id))
			u := &Unlock{Target: target, Name: name, Dead: []string{strings.ToUpper(digits)}, For: time.Millisecond}
			f, err := u.Run(t.Context())
			require.NoError(t, err)
			require.Equal(t, []string{digits}, f.TakenFrom)
			require.EqualValues(t, 1, *f.Subscribers)
			require.Equal(t, []byte(strconv.Itoa(i+1)), s.Do(t, "GET", name))
			message, _ := messages.Receive().(redis.Message)
			require.Equal(t, strconv.Itoa(i+1), string(message.Data))
		}
		left, err := redis.Strings(s.Do(t, "ZRANGE", protocol.PermitsKey(name), 0, -1), nil)
		require.NoError(t, err)
		require.Equal(t, []string{"", "0000000000000000"}, left)
	})
}
