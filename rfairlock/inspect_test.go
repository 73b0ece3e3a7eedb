package rfairlock_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestInspectReportsQueue(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, srv redistest.Target) {
		t.Helper()
		client := connect(t, srv.URL())
		l := rfairlock.New(client, redistest.Key(t))
		hold := take(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		all := queueUp(ctx, t, srv, l, 2, rlock.WithWait(time.Hour))
		srv.Do(t, "RPUSH", codec.QueueKey(l.Name()), "somebody else")
		in, err := admin.Inspect(t.Context(), l)
		require.NoError(t, err)
		require.Equal(t, "fair", in.Kind)
		require.Equal(t, []admin.Holder{{Owner: hold.Owner(), Text: hold.Owner().String(), Count: 1, CountText: "1"}}, in.Holders)
		require.Len(t, in.Queue, 3)
		deadlines := deadlinesOf(t, srv, l.Name())
		for i, w := range in.Queue[:2] {
			require.Equal(t, i+1, w.Position)
			require.Equal(t, client.ID(), w.Owner.Client())
			require.Equal(t, w.Owner.String(), w.Text)
			require.True(t, w.Subscribed)
			require.Equal(t, deadlines[w.Text], w.Deadline.UnixMilli())
		}
		require.Equal(t, admin.Waiter{Text: "somebody else", Position: 3, Counted: true}, in.Queue[2])
		srv.Do(t, "DEL", codec.QueueKey(l.Name()), codec.TimeoutKey(l.Name()))
		cancel()
		for _, w := range all {
			require.ErrorIs(t, w.failed(t, soon), context.Canceled)
		}
		require.NoError(t, hold.Unlock())
	})
}

// A user with the documented rights sees the same parts.
func TestInspectLimitsQueue(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, srv redistest.Target) {
		t.Helper()
		l := rfairlock.New(connect(t, srv.URL()), redistest.Key(t))
		queue, timeouts := codec.QueueKey(l.Name()), codec.TimeoutKey(l.Name())
		due := time.Now().Add(time.Hour).Truncate(time.Millisecond)
		for i, owner := range []string{"a", "b", "c", "d", "e", "f"} {
			srv.Do(t, "RPUSH", queue, owner)
			if owner != "e" {
				srv.Do(t, "ZADD", timeouts, due.UnixMilli()+int64(i), owner)
			}
		}
		srv.Do(t, "ZADD", timeouts, 1, "gone", due.UnixMilli()+60_000, "b") // not waiters' entries, and not in order
		locks := []*rlock.Lock{l}
		if s, isReal := srv.(*redistest.Server); isReal {
			s.Do(t, "ACL", append([]any{"SETUSER", "viewer-" + l.Name()}, redistest.Rights(t, "Inspection user")[2:]...)...)
			s.Do(t, "ACL", "SETUSER", "viewer-"+l.Name(), "allkeys")
			locks = append(locks, rfairlock.New(connect(t, s.UserURL("viewer-"+l.Name())), l.Name()))
		}
		for _, l := range locks {
			for _, c := range []struct {
				first, n int
				want     string
			}{
				{1, 2, "ab"}, {2, 3, "bcd"}, {4, 3, "def"}, {4, 100, "def"}, {1, 6, "abcdef"}, {-7, 0, "a"}, {7, 5, ""},
				{math.MinInt, math.MaxInt, "abcdef"}, {math.MaxInt, math.MaxInt, ""},
			} {
				in, err := admin.InspectPart(t.Context(), l, c.first, c.n)
				require.NoError(t, err)
				require.Equal(t, 6, in.Waiting)
				reported := ""
				for i, w := range in.Queue {
					reported += w.Text
					require.Equal(t, max(c.first, 1)+i, w.Position)
					switch w.Text {
					case "e":
						require.Zero(t, w.Deadline)
					case "b":
						require.Equal(t, due.Add(time.Minute), w.Deadline)
					default:
						require.Equal(t, due.Add(time.Duration(w.Text[0]-'a')*time.Millisecond), w.Deadline)
					}
				}
				require.Equal(t, c.want, reported)
			}
			in, err := admin.Inspect(t.Context(), l)
			require.NoError(t, err)
			require.Len(t, in.Queue, 6)
			require.Equal(t, 6, in.Waiting)
		}
	})
}

func TestInspectReadsOnlyRequestedPart(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	l := rfairlock.New(connect(t, srv.URL()), redistest.Key(t))
	queue, deadlines := []any{codec.QueueKey(l.Name())}, []any{codec.TimeoutKey(l.Name())}
	for i := range 2000 {
		queue, deadlines = append(queue, i), append(deadlines, 1000+i, i)
	}
	srv.Do(t, "RPUSH", queue...)
	srv.Do(t, "ZADD", deadlines...)
	_, err := admin.InspectPart(t.Context(), l, 500, 10)
	require.NoError(t, err)
	srv.Do(t, "CONFIG", "RESETSTAT")
	_, err = admin.InspectPart(t.Context(), l, 500, 10)
	require.NoError(t, err)
	require.Less(t, srv.BytesSent(t), 2000, "ten places of 2000")
	stats := srv.CommandStats(t)
	require.Equal(t, []int64{1, 1, 1, 0}, []int64{stats["lrange"], stats["zrange"], stats["llen"], stats["zscore"]}, "%v", stats)
}
