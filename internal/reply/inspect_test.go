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
		Held: []Held{{"a:1", 2, "2"}, {"b:-1", 11, "11"}, {"mode", 0, "read"}},
	}, in)
	in, err = Inspected([]any{int64(-2), []any{}})
	require.NoError(t, err)
	require.Equal(t, NoKey, in.Left)
	require.Empty(t, in.Held)
}

func TestInspectedReadsTheQueue(t *testing.T) {
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

func TestInspectedRefusesWhatIsNone(t *testing.T) {
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
