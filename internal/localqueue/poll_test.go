package localqueue

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPollWakesFirstWaiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = time.Second
		qs := newQueues(uuid.UUID{}, every)
		q, _ := enter(qs)
		_, first := enter(qs)
		time.Sleep(every / 2)
		_, second := enter(qs)
		polls := func(w *caller, says string) {
			t.Helper()
			synctest.Wait()
			require.True(t, isReady(w), says)
			require.NotNil(t, w.place, says)
		}
		time.Sleep(every / 2)
		polls(first, "after one interval")
		require.False(t, isReady(second), "the first polls for all")
		time.Sleep(every)
		polls(first, "after two")

		q.quit(first)
		time.Sleep(every)
		polls(second, "it is the first now")

		time.Sleep(every) // a poll that it has not looked at yet
		synctest.Wait()
		q.Pass(true)
		require.True(t, isReady(second))
		require.Nil(t, second.place)
		require.False(t, isReady(second), "one signal for both")
		q.Pass(true)
		requireNoQueue(t, qs)
	})
}

func TestEmptyQueueStopsPolling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = time.Second
		qs := newQueues(uuid.UUID{}, every)
		q, _ := enter(qs)
		_, w := enter(qs)
		q.quit(w)
		time.Sleep(every)
		synctest.Wait()
		require.False(t, q.polls, "its only waiter left")

		_, w = enter(qs)
		require.True(t, q.polls)
		q.quit(w)
		q.Pass(true)
		require.False(t, q.polls, "all have left")
		require.False(t, q.poll.Stop(), "so does its timer")
		requireNoQueue(t, qs)

		again, _ := enter(qs)
		_, w = enter(qs)
		time.Sleep(every)
		synctest.Wait()
		require.True(t, isReady(w), "as a new one")
		again.quit(w)
		again.Pass(true)
	})
}
