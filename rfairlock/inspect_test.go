package rfairlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

func TestInspectShowsTheQueue(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, srv redistest.Target) {
		t.Helper()
		client := connect(t, srv.URL())
		l := rfairlock.New(client, redistest.Key(t))
		hold := take(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		all := queueUp(ctx, t, srv, l, 2, rlock.WithWait(time.Minute))
		srv.Do(t, "RPUSH", codec.QueueKey(l.Name()), "somebody else")
		in, err := l.Inspect(t.Context())
		require.NoError(t, err)
		require.Equal(t, "fair", in.Kind)
		require.Equal(t, []rlock.Holder{{Owner: hold.Owner(), Text: hold.Owner().String(), Count: 1, CountText: "1"}}, in.Holders)
		require.Len(t, in.Queue, 3)
		for i, w := range in.Queue[:2] {
			require.Equal(t, i+1, w.Position)
			require.Equal(t, client.ID(), w.Owner.Client())
			require.Equal(t, w.Owner.String(), w.Text)
			require.Equal(t, rlock.SubscribedYes, w.Subscribed)
			require.WithinDuration(t, time.Now().Add(30*time.Second+time.Duration(i+1)*time.Minute), w.Deadline, 10*time.Second)
		}
		require.Equal(t, rlock.Waiter{Text: "somebody else", Position: 3, Subscribed: rlock.SubscribedNo}, in.Queue[2])
		srv.Do(t, "DEL", codec.QueueKey(l.Name()), codec.TimeoutKey(l.Name()))
		cancel()
		for _, w := range all {
			require.ErrorIs(t, w.failed(t, soon), context.Canceled)
		}
		require.NoError(t, hold.Unlock())
	})
}
