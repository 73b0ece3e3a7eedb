package reply

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

func TestDecodeBeatReadsEveryField(t *testing.T) {
	t.Parallel()
	b, err := DecodeBeat([]any{
		int64(1500), []any{"a:1", []byte("1795225218771.5"), []byte("b:2"), ""}, []any{"c:3", []byte("a:4")}, int64(1000),
	})
	require.NoError(t, err)
	require.Equal(t, Beat{
		Left: 1500, Front: []Place{{"a:1", "1795225218771.5"}, {"b:2", ""}}, Missing: []string{"c:3", "a:4"}, Length: 1000,
	}, b)
	for _, left := range []int64{-2, -1, 0, math.MaxInt64} {
		b, err = DecodeBeat([]any{left, []any{}, []any{}, int64(0)})
		require.NoError(t, err)
		require.Equal(t, left, b.Left)
		require.Empty(t, b.Front)
		require.Empty(t, b.Missing)
		require.Zero(t, b.Length)
	}
}

// An eviction compares the exact string.
func TestDecodeBeatPreservesDeadlineText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"0.10000000000000001", "1.7952248887710001e+12", "-5", "inf", "1795224888771"} {
		b, err := DecodeBeat([]any{int64(-2), []any{"a:1", text}, []any{}, int64(1)})
		require.NoError(t, err)
		require.Equal(t, []Place{{"a:1", text}}, b.Front)
	}
}

func TestDecodeBeatRejectsInvalidReply(t *testing.T) {
	t.Parallel()
	one := []any{"a:1", "5"}
	for _, reply := range append([]any{
		[]any{int64(-2), one, []any{}},
		[]any{int64(-2), one, []any{}, int64(1), int64(1)},
		[]any{int64(-3), one, []any{}, int64(1)},
		[]any{"5", one, []any{}, int64(1)},
		[]any{nil, one, []any{}, int64(1)},
		[]any{int64(-2), []any{"a:1"}, []any{}, int64(1)},
		[]any{int64(-2), []any{"a:1", nil}, []any{}, int64(1)},
		[]any{int64(-2), []any{int64(1), "5"}, []any{}, int64(1)},
		[]any{int64(-2), []any{"a:1", "soon"}, []any{}, int64(1)},
		[]any{int64(-2), []any{"a:1", "NaN"}, []any{}, int64(1)},
		[]any{int64(-2), []any{"a:1", "1e999"}, []any{}, int64(1)},
		[]any{int64(-2), "a:1", []any{}, int64(1)},
		[]any{int64(-2), one, []any{int64(1)}, int64(1)},
		[]any{int64(-2), one, nil, int64(1)},
		[]any{int64(-2), one, []any{}, "1"},
		[]any{int64(-2), one, []any{}, int64(0)},
		[]any{int64(-2), []any{}, []any{}, int64(-1)},
	}, foreign...) {
		b, err := DecodeBeat(reply)
		require.ErrorIs(t, err, transport.ErrBadReply, "%v", reply)
		require.Zero(t, b, "%v", reply)
	}
}

func TestDecodeEvictedReadsOwners(t *testing.T) {
	t.Parallel()
	owners, err := DecodeEvicted([]any{"a:1", []byte("b:2")})
	require.NoError(t, err)
	require.Equal(t, []string{"a:1", "b:2"}, owners)
	owners, err = DecodeEvicted([]any{})
	require.NoError(t, err)
	require.Empty(t, owners)
	for _, reply := range foreign {
		owners, err := DecodeEvicted(reply)
		if list, ok := reply.([]any); ok && len(owners) == len(list) {
			continue // an empty list, or a list of strings
		}
		require.ErrorIs(t, err, transport.ErrBadReply, "%v", reply)
	}
	_, err = DecodeEvicted([]any{"a:1", int64(1)})
	require.ErrorIs(t, err, transport.ErrBadReply)
}
