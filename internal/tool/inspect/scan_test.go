package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

func TestMain(m *testing.M) { redistest.Main(m) }

// found runs a scan and returns the locks by name. It requires that each lock is reported once and
// with the time.
func found(t *testing.T, s redistest.Target, r Request) map[string]*Lock {
	t.Helper()
	locks, began := map[string]*Lock{}, time.Now()
	r.Conn, r.Found = s.Dial(t), func(l *Lock) error {
		require.NotContains(t, locks, l.Name)
		require.False(t, l.At.Before(began) || l.At.After(time.Now()), "%v", l.At)
		l.At = time.Time{}
		locks[l.Name] = l
		return nil
	}
	unread, err := Run(t.Context(), r)
	require.NoError(t, err)
	require.Zero(t, unread)
	return locks
}

// requireLeft requires that seen, an earlier TTL of key, is at most whole and at least the current TTL.
func requireLeft(t *testing.T, s redistest.Target, key string, whole, seen time.Duration) {
	t.Helper()
	require.LessOrEqual(t, seen, whole)
	require.GreaterOrEqual(t, seen.Milliseconds(), s.Do(t, "PTTL", key))
}

func addLocks(t *testing.T, s redistest.Target) {
	t.Helper()
	s.Do(t, "HSET", "plain", java, 2)
	s.Do(t, "PEXPIRE", "plain", time.Hour.Milliseconds())
	s.Do(t, "HSET", "{eu}for-ever", ours, 1)
	s.Do(t, "HSET", "fair", java, 1)
	s.Do(t, "RPUSH", codec.QueueKey("fair"), ours, java2)
	s.Do(t, "RPUSH", codec.QueueKey("stuck"), ours)
	s.Do(t, "RPUSH", codec.QueueKey("{eu}stuck"), java)
	s.Do(t, "HSET", "{both}", java, 1)
	s.Do(t, "RPUSH", codec.QueueKey("{both}"), java2)
	s.Do(t, "HSET", "rw", "mode", "read", java, 1, java2, 1)
	var keys, fields []any
	for i := range 600 {
		keys, fields = append(keys, fmt.Sprint("key", i), 1), append(fields, fmt.Sprint("field", i), 1)
	}
	s.Do(t, "MSET", keys...)
	s.Do(t, "HSET", append([]any{"big-map"}, fields...)...)
	s.Do(t, "HSET", append([]any{"many-owners"}, owners(600)...)...)
	s.Do(t, "HSET", append([]any{"many-readers"}, owners(600)...)...)
	s.Do(t, "HSET", "many-readers", "mode", "read")
	s.Do(t, "HSET", "user", "name", "x")
	s.Do(t, "RPUSH", "list", java)
	s.Do(t, "RPUSH", codec.QueueKey("user"), java) // of a key that is not a lock
	s.Do(t, "SET", engine.LabelKey(uuid.MustParse(ours[:36])), "billing@host-3")
}

func owners(n int) (fields []any) {
	for i := range n {
		fields = append(fields, codec.NewOwner(uuid.Max, int64(i)).String(), 1)
	}
	return fields
}

func TestScanFindsAllKindsOnce(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		addLocks(t, s)
		locks := found(t, s, Request{})
		require.Equal(t, []string{"fair", "many-readers", "plain", "rw", "stuck", "{both}", "{eu}for-ever", "{eu}stuck"},
			slices.Sorted(maps.Keys(locks)))

		plain := locks["plain"]
		requireLeft(t, s, "plain", time.Hour, plain.TTL)
		require.Equal(t, &Lock{Name: "plain", Kind: Plain, Holders: []Holder{holderOf(java, "2", false)}, TTL: plain.TTL}, plain)
		labelled := []Holder{holderOf(ours, "1", false)}
		labelled[0].Label = "billing@host-3"
		require.Equal(t, &Lock{Name: "{eu}for-ever", Kind: Plain, Holders: labelled, TTL: redlatch.NoTTL}, locks["{eu}for-ever"])
		require.Equal(t, &Lock{
			Name: "fair", Kind: Fair, Holders: []Holder{holderOf(java, "1", false)}, TTL: redlatch.NoTTL,
			Queue: 2, Next: ours, NextLabel: "billing@host-3",
		}, locks["fair"])
		require.Equal(t, &Lock{Name: "stuck", Kind: Fair, Queue: 1, Next: ours, NextLabel: "billing@host-3"}, locks["stuck"])
		require.Equal(t, &Lock{Name: "{eu}stuck", Kind: Fair, Queue: 1, Next: java}, locks["{eu}stuck"])
		require.Equal(t, int64(1), locks["{both}"].Queue)
		require.Equal(t, ReadWrite, locks["rw"].Kind)
		require.Len(t, locks["rw"].Holders, 2)
		require.Equal(t, ReadWrite, locks["many-readers"].Kind)
		if _, isMini := s.(*redistest.MiniServer); !isMini { // which always returns the whole hash
			require.True(t, locks["many-readers"].More)
			require.Less(t, len(locks["many-readers"].Holders), 100)
		}
	})
}

func TestPatternsMatchNamesNotKeys(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	addLocks(t, s)
	for pattern, want := range map[string][]string{
		"stuck":    {"stuck"},
		"st?c[k]":  {"stuck"},
		"{eu}*":    {"{eu}for-ever", "{eu}stuck"},
		"*stuck":   {"stuck", "{eu}stuck"},
		"fair":     {"fair"},
		"redisson": nil,
	} {
		require.Equal(t, want, slices.Sorted(maps.Keys(found(t, s, Request{Pattern: pattern}))), pattern)
	}
}

func TestScanProgressIncreasesToEnd(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	for i := range 20_000 / 100 {
		var pairs []any
		for j := range 100 {
			pairs = append(pairs, fmt.Sprint("key:", 100*i+j), 1)
		}
		s.Do(t, "MSET", pairs...)
	}
	var seen []float64
	_, err := Run(t.Context(), Request{
		Conn: s.Dial(t), Found: func(*Lock) error { return nil }, Progress: func(done float64) { seen = append(seen, done) },
	})
	require.NoError(t, err)
	require.Greater(t, len(seen), 20)
	require.True(t, slices.IsSorted(seen))
	require.Less(t, seen[0], 0.2)
	require.InDelta(t, 1, seen[len(seen)-1], 0)
	middle := seen[len(seen)/4] // of the first of two passes
	require.InDelta(t, 0.25, middle, 0.15, "it is in proportion")
}

func TestScanEndsWithContextOrFoundError(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	addLocks(t, s)
	enough := errors.New("enough")
	_, err := Run(t.Context(), Request{Conn: s.Dial(t), Found: func(*Lock) error { return enough }})
	require.ErrorIs(t, err, enough)
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Run(ctx, Request{Conn: s.Dial(t), Found: func(*Lock) error { cancel(); return nil }})
	require.ErrorIs(t, err, context.Canceled)
}

func TestUnreadableKeysAreCounted(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	addLocks(t, s)
	s.Do(t, "ACL", "SETUSER", "onlooker", "reset", "on", "nopass", "+scan", "+hscan", "+pttl", "+llen", "+lindex", "+hget", "~plain")
	c, err := redis.Dial("tcp", s.Addr(), redis.DialUsername("onlooker"), redis.DialPassword("x"))
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	var names []string
	unread, err := Run(t.Context(), Request{Conn: c, Found: func(l *Lock) error {
		names = append(names, l.Name)
		return nil
	}})
	require.NoError(t, err)
	require.Equal(t, []string{"plain"}, names)
	require.Positive(t, unread.Keys)
	require.ErrorContains(t, unread.Why, "NOPERM")

	s.Do(t, "ACL", "SETUSER", "onlooker", "-scan")
	_, err = Run(t.Context(), Request{Conn: c, Found: func(*Lock) error { return nil }})
	require.ErrorContains(t, err, "NOPERM")
}

func TestUnreadNamesServerReason(t *testing.T) {
	t.Parallel()
	u := Unread{Keys: 1, Why: redis.Error("CLUSTERDOWN The cluster is down")}
	require.Regexp(t, "^1 key was not inspected: CLUSTERDOWN The cluster is down. A master is down", u.Text("keys"))
	u = Unread{Keys: 2, Why: redis.Error("ERR odd")}
	require.Equal(t, "2 keys were not inspected: ERR odd", u.Text("keys"))
	u.Why = redis.Error("NOPERM No permissions to access a key")
	require.Equal(t, "2 keys were not inspected: this user may not read them (NOPERM No permissions to access a key)", u.Text("keys"))
}

func TestDeniedKeysAreDistinguishedFromOtherReplies(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"NOPERM No permissions", "CLUSTERDOWN The cluster is down", "MOVED 7 h:1", "ASK 7 h:1"} {
		_, is := refusal(redis.Error(text))
		require.True(t, is, text)
	}
	_, is := refusal(redis.Error("WRONGTYPE Operation against a key"))
	require.False(t, is, "it was replaced since SCAN has found it")
	require.NoError(t, unanswered(redis.Error("NOPERM")))
	require.Error(t, unanswered(errors.New("no node")))
}
