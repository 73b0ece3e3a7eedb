package codec

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestInspectedReadsEveryField(t *testing.T) {
	t.Parallel()
	left, held, queue, err := Inspected([]any{int64(1500), []any{"a:1", "2", []byte("b:-1"), []byte("11"), "mode", "read"}})
	require.NoError(t, err)
	require.Equal(t, 1500*time.Millisecond, left)
	require.Equal(t, []Held{{"a:1", 2, "2"}, {"b:-1", 11, "11"}, {"mode", 0, "read"}}, held)
	require.Nil(t, queue)
	left, held, _, err = Inspected([]any{int64(-2), []any{}})
	require.NoError(t, err)
	require.Equal(t, NoKey, left)
	require.Empty(t, held)
}

func TestInspectedReadsTheQueue(t *testing.T) {
	t.Parallel()
	_, _, queue, err := Inspected([]any{
		int64(1500), []any{}, []any{"a:1", []byte("b:2"), "c:3"},
		[]any{"c:3", "1795225218771.5", "a:1", []byte("1795225218771")}, []any{int64(1), int64(0)},
	})
	require.NoError(t, err)
	due := time.UnixMilli(1795225218771)
	require.Equal(t, []Queued{
		{"a:1", due, "1795225218771", 1}, {"b:2", time.Time{}, "", 0}, {"c:3", due, "1795225218771.5", -1},
	}, queue)
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
		free([]any{int64(1)}, []any{}, []any{}),
		free([]any{}, []any{"a:1"}, []any{}),
		free([]any{}, []any{"a:1", "soon"}, []any{}),
		free([]any{}, []any{"a:1", "NaN"}, []any{}),
		free([]any{}, []any{}, "1"),
	}, foreign...) {
		_, _, _, err := Inspected(reply)
		require.ErrorIs(t, err, ErrBadReply, "%v", reply)
	}
}
