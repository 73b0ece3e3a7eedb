package inspect

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
)

const (
	java  = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57"
	java2 = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:58"
	ours  = "0193e6a1-7a58-7c4d-9d5f-3f6f0b8f3a22:1"
)

func TestLocksAreKnownByTheirFields(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		fields [][2]string
		more   bool
		want   Kind // "" for none
	}{
		"plain":                        {[][2]string{{java, "1"}}, false, Plain},
		"entered often":                {[][2]string{{ours, "12345"}}, false, Plain},
		"read lock":                    {[][2]string{{"mode", "read"}, {java, "1"}, {java2, "2"}}, false, ReadWrite},
		"write lock":                   {[][2]string{{"mode", "write"}, {java + ":write", "1"}}, false, ReadWrite},
		"many readers":                 {[][2]string{{java, "1"}, {java2, "1"}}, true, ReadWrite},
		"empty":                        {nil, false, ""},
		"mode alone":                   {[][2]string{{"mode", "read"}}, false, ""},
		"two owners":                   {[][2]string{{java, "1"}, {java2, "1"}}, false, ""},
		"a write lock without a mode":  {[][2]string{{java + ":write", "1"}}, false, ""},
		"another program's field":      {[][2]string{{java, "1"}, {"name", "x"}}, false, ""},
		"no number":                    {[][2]string{{java, "x"}}, false, ""},
		"a count of nothing":           {[][2]string{{java, "0"}}, false, ""},
		"no owner":                     {[][2]string{{"user", "1"}}, false, ""},
		"an owner in another spelling": {[][2]string{{"71B96CE8-2746-4B0E-9D5F-3F6F0B8F3A11:57", "1"}}, false, ""},
		"another program's mode":       {[][2]string{{"mode", "dark"}, {java, "1"}}, false, ""},
	} {
		got := ShapeOf(c.fields, c.more)
		require.Equal(t, c.want, got.Kind, what)
		require.Equal(t, c.want == "", got.Odd != "", what)
	}
}

func TestQueueKeysNameTheirLocks(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"orders", "orders:42", "a}b", "{eu}orders", "x{y", "{a}{b}"} {
		require.Equal(t, name, lockOf(codec.QueueKey(name)))
	}
	require.Equal(t, "a", lockOf(codec.QueueKey("{a}")), "they have one queue")
}
