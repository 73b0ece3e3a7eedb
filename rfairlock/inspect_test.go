package rfairlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
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
		queueUp(t, srv, l, 2, rlock.WithWait(time.Minute))
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
		require.NoError(t, hold.Unlock())
	})
}

func connect(t testing.TB, url string, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	c, err := redlatch.Open(t.Context(), url, opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

func take(t testing.TB, l *rlock.Lock, opts ...rlock.Option) *rlock.Hold {
	t.Helper()
	h, err := l.TryLock(t.Context(), opts...)
	require.NoError(t, err)
	return h
}

// queueUp makes n waiters stand in the queue and listen, one after the other. They
// leave when the test ends.
func queueUp(t testing.TB, srv redistest.Target, l *rlock.Lock, n int, opts ...rlock.Option) []<-chan error {
	t.Helper()
	var all []<-chan error
	for range n {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		t.Cleanup(func() { cancel(); <-done })
		go func() {
			_, err := l.Lock(ctx, opts...)
			done <- err
			close(done)
		}()
		all = append(all, done)
		require.Eventually(t, func() bool {
			in, err := l.Inspect(t.Context())
			return err == nil && len(in.Queue) == len(all) && in.Queue[len(all)-1].Subscribed == rlock.SubscribedYes
		}, 10*time.Second, time.Millisecond)
	}
	return all
}
