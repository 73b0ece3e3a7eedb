package reply

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// foreign contains replies that no decoder accepts.
var foreign = []any{
	int64(-3), int64(math.MinInt64), 1, int32(0), true, 1.5, "OK", "", []byte("x"), []byte(nil), "1 ",
	[]any(nil), []any{}, []any{int64(2), nil, nil, nil, nil}, []any{nil}, []any{"1"}, []any{[]any{int64(1)}},
	errors.New("ERR no"), struct{}{}, map[string]any{"a": 1}, []int64{1}, make(chan int),
}

func TestAcquiredReturnsWait(t *testing.T) {
	t.Parallel()
	ok, ttl, err := Acquired(nil)
	require.NoError(t, err)
	require.True(t, ok)
	require.Zero(t, ttl)

	for reply, want := range map[int64]time.Duration{
		29_999:        29_999 * time.Millisecond,
		1:             time.Millisecond,
		0:             0,
		-1:            NoTTL,
		-2:            0,
		-300_000:      0,
		math.MinInt64: 0,
		math.MaxInt64: math.MaxInt64,
	} {
		ok, ttl, err = Acquired(reply)
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, want, ttl, reply)
	}
	require.Negative(t, NoTTL)
}

func TestRefusalMayNameTheHolder(t *testing.T) {
	t.Parallel()
	holder := codec.NewOwner(uuid.UUID{4}, -7)
	for _, c := range []struct {
		reply any
		want  codec.Owner
		free  bool
	}{
		{[]any{int64(1500), holder.String()}, holder, false},
		{[]any{int64(1500), []byte(holder.String())}, holder, false},
		{[]any{int64(1500), "mode"}, codec.Owner{}, false},
		{[]any{int64(1500), ""}, codec.Owner{}, true},
		{[]any{int64(1500), nil}, codec.Owner{}, false},
		{[]any{int64(1500)}, codec.Owner{}, false},
		{int64(1500), codec.Owner{}, false},
	} {
		ok, ttl, err := Acquired(c.reply)
		require.NoError(t, err)
		require.False(t, ok)
		require.Equal(t, 1500*time.Millisecond, ttl)
		got := Refused(c.reply)
		got.Foreign = false
		require.Equal(t, Refusal{Holder: c.want, Free: c.free}, got)
	}
	require.Zero(t, Refused(nil), "not refused")
	queue := []any{int64(1500), []byte(holder.String()), []byte("x:1"), int64(1)}
	require.Equal(t, Refusal{Holder: holder, Head: "x:1", Position: 1}, Refused(queue))
	queue[3] = int64(0)
	require.Equal(t, Refusal{Holder: holder, Head: "x:1"}, Refused(queue))
}

func TestRefusedDetectsForeignHolder(t *testing.T) {
	t.Parallel()
	id := codec.NewOwner(uuid.UUID{4}, 7).String()
	for field, foreign := range map[string]bool{
		id: false, id + ":write": false, id + ":" + id: false, "node-a:57": false, "a:b:-5": false, ":1": false, "order:" + id + ":lock_count": false,
		"name": true, "mode": true, "a:b": true, "a:": true, "a:-": true, "a:-b": true, "57": true, "": false,
	} {
		require.Equal(t, foreign, Refused([]any{int64(1500), field}).Foreign, field)
	}
	require.False(t, Refused([]any{int64(1500), nil}).Foreign, "the user may not query it")
}

func TestForeignErrorNamesField(t *testing.T) {
	t.Parallel()
	for _, reply := range []any{"name", []byte("name")} {
		field, foreign, err := Foreign(reply)
		require.NoError(t, err)
		require.True(t, foreign)
		require.Equal(t, "name", field)
	}
	_, foreign, err := Foreign(nil)
	require.NoError(t, err)
	require.False(t, foreign)
	_, _, err = Foreign(int64(1))
	require.ErrorIs(t, err, transport.ErrBadReply)
}

func TestReleasedDistinguishesThreeOutcomes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reply any
		want  ReleaseOutcome
		text  string
	}{
		{nil, NotHeld, "not held"}, {int64(1), Free, "free"}, {int64(0), StillHeld, "still held"},
	} {
		got, err := Released(c.reply)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
		require.Equal(t, c.text, got.String())
		require.NotZero(t, got, "no outcome looks like a missing one")
	}
	require.Equal(t, "unknown", ReleaseOutcome(0).String())
}

func TestFlagRejectsOtherValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		decode func(any) (bool, error)
		no     any
	}{
		"reentered": {Reentered, nil}, "holds": {Holds, nil},
		"forced": {Forced, int64(0)}, "exists": {Exists, int64(0)}, "nudged": {Nudged, int64(0)},
	} {
		for _, reply := range append([]any{nil, int64(0), int64(1), int64(2)}, foreign...) {
			yes, err := c.decode(reply)
			if isInt, _ := reply.(int64); isInt == 1 || reply == nil && c.no == nil || reply == any(int64(0)) && c.no != nil {
				require.NoError(t, err, name)
				require.Equal(t, isInt == 1, yes, name)
			} else {
				require.ErrorIs(t, err, transport.ErrBadReply, "%s: %T", name, reply)
				require.False(t, yes, name)
			}
		}
	}
}

func TestRenewedAtReportsEachLock(t *testing.T) {
	t.Parallel()
	reply := any([]any{int64(1), int64(0), "1"})
	first, err := RenewedAt(reply, 0, 3)
	require.NoError(t, err)
	require.True(t, first)
	second, err := RenewedAt(reply, 1, 3)
	require.NoError(t, err)
	require.False(t, second)
	_, err = RenewedAt(reply, 2, 3)
	require.ErrorContains(t, err, `unexpected reply to renewal: string "1"`)

	for _, c := range []struct{ i, n int }{{0, 2}, {0, 4}, {3, 3}, {-1, 3}, {0, 0}} {
		_, err = RenewedAt(reply, c.i, c.n)
		require.ErrorContains(t, err, "[]interface {} of 3")
	}
	_, err = RenewedAt(nil, 0, 1)
	require.ErrorIs(t, err, transport.ErrBadReply)
}

func TestCountAndMillis(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reply any
		want  int64
	}{{nil, 0}, {"2", 2}, {[]byte("2"), 2}, {"-1", -1}} {
		got, err := Count(c.reply)
		require.NoError(t, err)
		require.Equal(t, c.want, got)
	}
	_, err := Count(int64(2))
	require.ErrorIs(t, err, transport.ErrBadReply, "HGET never answers with an integer")

	for reply, want := range map[int64]time.Duration{
		30_000: 30 * time.Second, 0: 0, -1: NoTTL, -2: NoKey, math.MaxInt64: math.MaxInt64,
	} {
		got, err := Millis(reply)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	require.Less(t, NoKey, NoTTL)
}

func TestForeignRepliesReturnErrors(t *testing.T) {
	t.Parallel()
	for _, reply := range foreign {
		_, err := Released(reply)
		require.ErrorIs(t, err, transport.ErrBadReply, "%T", reply)
		_, err = Count(reply)
		require.ErrorIs(t, err, transport.ErrBadReply, "%T", reply)
		_, err = Millis(reply)
		require.ErrorIs(t, err, transport.ErrBadReply, "%T", reply)
		_, err = RenewedAt(reply, 0, 1)
		require.ErrorIs(t, err, transport.ErrBadReply, "%T", reply)
		if _, number := reply.(int64); !number {
			_, _, err = Acquired(reply)
			require.ErrorIs(t, err, transport.ErrBadReply, "%T", reply)
		}
	}
}

func TestBadReplyNamesTypeAndExcerpt(t *testing.T) {
	t.Parallel()
	for want, reply := range map[string]any{
		`unexpected reply to release: string "` + strings.Repeat("z", 64) + `"...`: strings.Repeat("z", 1<<20),
		`unexpected reply to release: []uint8 "O\x00K"`:                            []byte("O\x00K"),
		`unexpected reply to release: int64 7`:                                     int64(7),
		`unexpected reply to release: *errors.errorString "ERR no"`:                errors.New("ERR no"),
		`unexpected reply to release: []interface {} of 2`:                         []any{nil, nil},
		`unexpected reply to release: bool`:                                        true,
	} {
		_, err := Released(reply)
		require.EqualError(t, err, "redlatch: "+want)
	}
}

// Not parallel: AllocsPerRun counts the whole process.
func TestDecodingDoesNotAllocate(t *testing.T) {
	ttl, batch := any(int64(29_999)), any([]any{int64(1), int64(0)})
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _, err1 := Acquired(ttl)
		_, err2 := Released(nil)
		_, err3 := RenewedAt(batch, 1, 2)
		if err1 != nil || err2 != nil || err3 != nil {
			t.Error(err1, err2, err3)
		}
	}))
}

func FuzzReplies(f *testing.F) {
	f.Add(uint8(0), int64(1), []byte("1"), 0, 1)
	f.Add(uint8(1), int64(30000), []byte("1795225218771"), 0, 1)
	f.Add(uint8(3), int64(-1), []byte("-0"), 1, 2)
	f.Add(uint8(3), int64(-1), []byte("inf"), 1, 2)
	f.Add(uint8(4), int64(-2), []byte("\xff"), -1, -1)
	f.Add(uint8(5), int64(math.MaxInt64), []byte{}, math.MaxInt, 0)
	f.Fuzz(func(t *testing.T, kind uint8, n int64, text []byte, i, size int) {
		one := [...]any{nil, n, string(text), text, int(n), errors.New(string(text))}
		item := one[int(kind)%len(one)]
		good := func(err error) {
			t.Helper()
			require.True(t, err == nil || errors.Is(err, transport.ErrBadReply))
			require.True(t, err == nil || len(err.Error()) < 96+4*64, "no error repeats a large reply")
		}
		for _, r := range []any{
			item, []any{item}, []any{item, n}, []any{[]any{item}},
			[]any{n, []any{text, item}, []any{item}, n}, []any{n, []any{item, text, "a:1", ""}, []any{}, n}, []any{n, item, item, item},
		} {
			ok, ttl, err := Acquired(r)
			good(err)
			require.True(t, !ok || ttl == 0 && err == nil)
			require.True(t, ttl >= 0 || ttl == NoTTL)
			outcome, err := Released(r)
			require.Equal(t, err != nil, outcome == 0)
			left, err := Millis(r)
			good(err)
			require.GreaterOrEqual(t, left, NoKey)
			_, err = RenewedAt(r, i, size)
			good(err)
			b, err := DecodeBeat(r)
			good(err)
			require.GreaterOrEqual(t, b.Left, int64(-2))
			require.GreaterOrEqual(t, b.Length, int64(len(b.Front)))
			owners, err := DecodeEvicted(r)
			good(err)
			require.True(t, err == nil || owners == nil)
			for _, decode := range []func(any) (bool, error){Forced, Exists, Nudged} {
				_, err = decode(r)
				good(err)
			}
			_, err = Count(r)
			good(err)
		}
	})
}
