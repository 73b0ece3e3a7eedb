package reply

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

func TestInspectedReadsEveryField(t *testing.T) {
	t.Parallel()
	in, err := Inspected([]any{int64(1500), []any{"a:1", "2", []byte("b:-1"), []byte("11"), "mode", "read"}})
	require.NoError(t, err)
	require.Equal(t, Inspection{
		Left: 1500 * time.Millisecond,
		Held: []Held{{Owner: "a:1", Count: 2, Text: "2"}, {Owner: "b:-1", Count: 11, Text: "11"}, {Owner: "mode", Text: "read"}},
	}, in)
	in, err = Inspected([]any{int64(-2), []any{}})
	require.NoError(t, err)
	require.Equal(t, NoKey, in.Left)
	require.Empty(t, in.Held)
}

func TestInspectedReadWriteReadsModeAndReaders(t *testing.T) {
	t.Parallel()
	fields := []any{"a:1", "2", []byte("mode"), "write", "a:1:write", "1"}
	in, err := InspectedReadWrite([]any{int64(1500), fields, []any{int64(900), int64(-2), int64(-2)}})
	require.NoError(t, err)
	require.Equal(t, Inspection{
		Left: 1500 * time.Millisecond, Mode: "write",
		Held: []Held{{Owner: "a:1", Count: 2, Text: "2", Left: 900 * time.Millisecond}, {Owner: "a:1:write", Count: 1, Text: "1"}},
	}, in)
	in, err = InspectedReadWrite([]any{int64(-1), []any{"mode", "neither"}, []any{int64(-2)}})
	require.NoError(t, err)
	require.Empty(t, in.Mode)
	require.Len(t, in.Held, 1, "the hash of another program")
	for _, odd := range []any{
		nil, []any{}, []any{int64(1), fields}, []any{int64(1), fields, []any{}}, []any{int64(1), fields, int64(1)},
		[]any{int64(1), fields, []any{"1", "2", "3"}}, []any{int64(-3), fields, []any{int64(1), int64(1), int64(1)}},
	} {
		_, err := InspectedReadWrite(odd)
		require.ErrorIs(t, err, transport.ErrBadReply, odd)
	}
}

func TestInspectedReadsQueue(t *testing.T) {
	t.Parallel()
	in, err := Inspected([]any{
		int64(1500), []any{}, []any{"a:1", []byte("b:2"), "c:3"},
		[]any{"c:3", "1795225218771.5", "a:1", []byte("1795225218771"), "d:4", "1"}, []any{int64(1), int64(0)}, int64(7),
	})
	require.NoError(t, err)
	due := time.UnixMilli(1795225218771)
	require.Equal(t, []Queued{
		{"a:1", due, "1795225218771", 1}, {"b:2", time.Time{}, "", 0}, {"c:3", due, "1795225218771.5", -1},
	}, in.Queue)
	require.EqualValues(t, 7, in.Waiting)
}

func TestInspectedRejectsInvalidReply(t *testing.T) {
	t.Parallel()
	free := func(rest ...any) []any { return append([]any{int64(-2), []any{}}, rest...) }
	for _, reply := range append([]any{
		[]any{int64(1), []any{"a:1"}},
		[]any{int64(1), []any{int64(1), "1"}},
		[]any{"1", []any{}},
		[]any{int64(1), "a:1"},
		[]any{int64(1), nil},
		free([]any{}),
		free([]any{}, []any{}, []any{}),
		free([]any{int64(1)}, []any{}, []any{}, int64(1)),
		free([]any{}, []any{"a:1"}, []any{}, int64(0)),
		free([]any{}, []any{"a:1", "soon"}, []any{}, int64(0)),
		free([]any{}, []any{"a:1", "NaN"}, []any{}, int64(0)),
		free([]any{}, []any{}, "1", int64(0)),
		free([]any{}, []any{}, []any{}, "0"),
		free([]any{"a:1"}, []any{}, []any{}, int64(0)),
		free([]any{}, []any{}, []any{}, int64(-1)),
	}, foreign...) {
		_, err := Inspected(reply)
		require.ErrorIs(t, err, transport.ErrBadReply, "%v", reply)
	}
}
