package inspect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

const (
	java  = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57"
	java2 = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:58"
	ours  = "0193e6a1-7a58-7c4d-9d5f-3f6f0b8f3a22:1"
)

func TestShapeOfDistinguishesLocksFromHashes(t *testing.T) {
	t.Parallel()
	several := `it has several owners but no field "mode", as a read/write lock would`
	for what, c := range map[string]struct {
		fields [][2]string
		more   bool
		want   Kind   // "" for none
		odd    string // why not
	}{
		"plain":                        {[][2]string{{java, "1"}}, false, Plain, ""},
		"entered often":                {[][2]string{{ours, "12345"}}, false, Plain, ""},
		"read lock":                    {[][2]string{{"mode", "read"}, {java, "1"}, {java2, "2"}}, false, ReadWrite, ""},
		"write lock":                   {[][2]string{{"mode", "write"}, {java + ":write", "1"}}, false, ReadWrite, ""},
		"many readers":                 {[][2]string{{java, "1"}, {java2, "1"}}, true, ReadWrite, ""},
		"empty":                        {nil, false, "", `it has a field "mode" but no owner`},
		"mode alone":                   {[][2]string{{"mode", "read"}}, false, "", `it has a field "mode" but no owner`},
		"two owners":                   {[][2]string{{java, "1"}, {java2, "1"}}, false, "", several},
		"a write lock without a mode":  {[][2]string{{java + ":write", "1"}}, false, "", `it has the owner of a write lock but no field "mode"`},
		"another program's field":      {[][2]string{{java, "1"}, {"name", "Ada"}}, false, "", `its field "name" is not an owner`},
		"no number":                    {[][2]string{{java, "secret"}}, false, "", "its value of " + java + " is not a count"},
		"a count of nothing":           {[][2]string{{java2, "0"}}, false, "", "its value of " + java2 + " is not a count"},
		"no owner":                     {[][2]string{{"user", "1"}}, false, "", `its field "user" is not an owner`},
		"an owner in another spelling": {[][2]string{{strings.ToUpper(java), "1"}}, false, "", `its field "` + strings.ToUpper(java) + `" is not an owner`},
		"another program's mode":       {[][2]string{{"mode", "dark"}, {java, "1"}}, false, "", `its field "mode" is not an owner`},
		"a group of a multi-lock": {
			[][2]string{{"q1w2:" + java + ":lock_count", "1"}}, false, "",
			"it looks like a multi-lock group (Redisson's getMultiLock of one group), which Redlatch does not know",
		},
	} {
		got := ShapeOf(c.fields, c.more)
		require.Equal(t, c.want, got.Kind, what)
		require.Equal(t, c.odd, got.Odd, what)
		require.Equal(t, c.want == "", got.Holders == nil, what)
	}
	require.Equal(t, Shape{
		Kind: ReadWrite, Mode: "write", Holders: []Holder{holderOf(java+":write", "1", true), holderOf(java2, "3", true)},
	}, ShapeOf([][2]string{{java + ":write", "1"}, {"mode", "write"}, {java2, "3"}}, false))
}

func TestQueueKeysNameLocks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"orders", "orders:42", "a}b", "{eu}orders", "x{y", "{a}{b}"} {
		require.Equal(t, name, lockOf(codec.QueueKey(name)))
	}
	require.Equal(t, "a", lockOf(codec.QueueKey("{a}")), "they have one queue")
}

func TestGlanceIsBoundedForLargeHash(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		addLocks(t, s)
		s.Do(t, "HSET", "odd-mode", "mode", "dark")
		s.Do(t, "HSET", append([]any{"odd-mode"}, owners(600)...)...)
		c := s.Dial(t)
		for name, want := range map[string]string{
			"plain": "", "rw": "", "many-readers": "", "list": "", "nothing": "", "key1": "", "stuck": "",
			"user": "is not an owner", "big-map": "is not an owner", "many-owners": "owners but no field", "odd-mode": "",
		} {
			err := Glance(c, name)
			switch {
			case name == "odd-mode":
				require.Error(t, err)
			case want == "":
				require.NoError(t, err, name)
			default:
				require.ErrorContains(t, err, want, name)
			}
			if other := (*NotLock)(nil); err != nil {
				require.ErrorAs(t, err, &other)
			}
		}
	})
	s := redistest.Start(t)
	addLocks(t, s)
	s.Do(t, "CONFIG", "RESETSTAT")
	require.Error(t, Glance(s.Dial(t), "big-map"))
	require.Zero(t, s.CommandStats(t)["hgetall"])
	c := s.Dial(t)
	_, err := c.Do("QUIT")
	require.NoError(t, err)
	err = Glance(c, "plain")
	require.Error(t, err, "the connection is gone")
	other := (*NotLock)(nil)
	require.NotErrorAs(t, err, &other)
}

func TestReadersHaveSeparateLeases(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		for name, prefix := range map[string]string{"books": "{books}", "{eu}books": "{eu}books"} {
			hold := func(owner string, n int, left time.Duration) {
				s.Do(t, "SET", fmt.Sprintf("%s:%s:rwlock_timeout:%d", prefix, owner, n), 1)
				if left > 0 {
					s.Do(t, "PEXPIRE", fmt.Sprintf("%s:%s:rwlock_timeout:%d", prefix, owner, n), left.Milliseconds())
				}
			}
			forEver := codec.NewOwner(uuid.Max, 1).String()
			hold(java, 1, time.Minute)
			hold(java, 2, time.Hour)
			hold(java, 3, time.Minute)
			hold(java, 4, 10*time.Hour) // it has three holds
			hold(forEver, 1, 0)
			hold(forEver, 2, time.Minute)
			holders := []Holder{
				holderOf(java, "3", true), holderOf(java2, "2", true), holderOf(forEver, "2", true), holderOf(ours, "65", true),
				holderOf(java+":write", "1", true), holderOf("nobody", "many", true),
			}
			require.Equal(t, []string{ours, "nobody"}, ReadLeases(s.Dial(t), name, holders))
			left := time.Duration(*holders[0].LeftMillis) * time.Millisecond
			requireLeft(t, s, fmt.Sprintf("%s:%s:rwlock_timeout:2", prefix, java), time.Hour, left)
			require.Zero(t, *holders[1].LeftMillis)
			for _, h := range holders[2:] {
				require.Nil(t, h.LeftMillis, h.Owner)
			}
		}
	})
}
