package countqueue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listening is a subscription without events.
type listening struct{ closed bool }

func (*listening) Events() <-chan transport.Event { return nil }
func (l *listening) Close()                       { l.closed = true }
func (*listening) Err() error                     { return nil }

// queued returns a subscribed queue of callers that are waiting for the given numbers of permits.
func queued(t *testing.T, permits ...int64) (*queue, []*caller) {
	t.Helper()
	all := &engine.Registry[name, *queue]{}
	var q *queue
	var callers []*caller
	for _, n := range permits {
		q = all.Join(name{}, func() *queue { return &queue{queues: all, sub: &listening{}} })
		c := &caller{strategy: &strategy{engine: &engine.Engine{Config: engine.Config{PollCap: time.Minute}}, n: n}, queue: q}
		may, refused := c.begin(false)
		require.False(t, refused)
		if may { // the first of all
			q.insert(c)
		}
		callers = append(callers, c)
	}
	return q, callers
}

// refuse refuses c, which must have the turn.
func refuse(t *testing.T, c *caller, left int64) {
	t.Helper()
	ask, _ := c.Woken()
	require.True(t, ask, "it was not its turn")
	<-c.wake
	c.Refused(&acquire.Acquisition{}, acquire.Outcome{Available: left, TTL: -1})
}

func grant(t *testing.T, c *caller, left int64) {
	t.Helper()
	ask, _ := c.Woken()
	require.True(t, ask, "it was not its turn")
	<-c.wake
	c.Granted(&acquire.Acquisition{Available: left})
}

func TestRoundTriesFittingWaitersInOrder(t *testing.T) {
	t.Parallel()
	q, c := queued(t, 3, 2, 1, 2)
	q.begin(nil)
	refuse(t, c[0], 2)
	require.Equal(t, c[1], q.asking)
	refuse(t, c[1], 1) // another process was faster
	require.Equal(t, c[2], q.asking)
	grant(t, c[2], 0)
	require.Nil(t, q.asking)
	q.begin(nil)
	grant(t, c[0], 4)
	grant(t, c[1], 2)
	sub, _ := q.sub.(*listening)
	require.False(t, sub.closed)
	grant(t, c[3], 0)
	require.True(t, sub.closed, "the last one ends the subscription")
}

func TestMessageDuringRoundStartsAnother(t *testing.T) {
	t.Parallel()
	q, c := queued(t, 2, 1)
	q.begin(nil)
	ask, _ := c[1].OnEvent(transport.Event{})
	require.False(t, ask)
	refuse(t, c[0], 0)
	require.Equal(t, c[0], q.asking, "it retries")
	refuse(t, c[0], 1)
	grant(t, c[1], 0)
}

func TestLeavingWaiterPassesTurn(t *testing.T) {
	t.Parallel()
	q, c := queued(t, 2, 2, 1)
	q.begin(nil)
	c[0].Leave(nil)
	require.Equal(t, c[1], q.asking)
	refuse(t, c[1], 1)
	require.Equal(t, c[2], q.asking)
	c[2].Leave(nil)
	require.Equal(t, c[1], q.asking, "its wake-up may be lost with it")
}

func TestNewWaiterTriesOnlyRemainingPermits(t *testing.T) {
	t.Parallel()
	q, c := queued(t, 3, 1)
	come := func(n int64, try bool) (may, refused bool) {
		return (&caller{strategy: &strategy{n: n}, queue: q}).begin(try)
	}
	q.begin(nil)
	refuse(t, c[0], 2)
	q.state.Known = true
	may, _ := come(1, true)
	require.False(t, may, "the second waiter acquires it")
	grant(t, c[1], 1)
	may, _ = come(1, true)
	require.True(t, may)
	may, refused := come(2, true)
	require.True(t, may, "only the server knows whether as many have come back")
	require.False(t, refused)
	_, refused = come(3, true)
	require.True(t, refused, "the first has left")
}

func TestNextWaiterSubscribesWhenFirstLeaves(t *testing.T) {
	t.Parallel()
	q, c := queued(t, 1, 1)
	_, wake := c[1].Signals()
	events, _ := c[1].Signals()
	require.Equal(t, (<-chan transport.Event)(q.silence), events)
	c[0].Leave(nil)
	<-wake
	ask, d := c[1].Woken()
	require.False(t, ask, "nothing was missed")
	require.Equal(t, time.Minute, d)
	require.Equal(t, time.Minute, c[1].Sleep(0, 0))
	require.True(t, q.isFirst(c[1]))
	// Without a subscription it also tries.
	q, c = queued(t, 1, 1)
	q.sub = nil
	c[0].Leave(nil)
	ask, _ = c[1].Woken()
	require.True(t, ask)
}

func TestWaiterJoiningRoundIsTried(t *testing.T) {
	t.Parallel()
	q, c := queued(t, 2)
	q.begin(nil)
	late := &caller{strategy: &strategy{engine: c[0].engine, n: 1}, queue: q}
	may, _ := late.begin(false)
	require.False(t, may)
	refuse(t, c[0], 1)
	require.Equal(t, late, q.asking)
}

// A message wakes the first caller, which gets no reply and leaves.
func TestUnansweredWaiterPassesWakeUp(t *testing.T) {
	t.Parallel()
	q, c := queued(t, 1, 1)
	ask, _ := c[0].OnEvent(transport.Event{})
	require.True(t, ask)
	c[0].Unanswered(transport.ErrNotSent)
	c[0].Leave(&acquire.Acquisition{})
	require.Equal(t, c[1], q.asking)
	grant(t, c[1], 0)
}

// A caller that arrived earlier becomes the first while another caller still uses the subscription.
func TestBrokenSubscriptionIsReplacedOnce(t *testing.T) {
	t.Parallel()
	q, c := queued(t, 1, 1)
	broken, _ := q.sub.(*listening)
	earlier, later := c[0], c[1]
	q.waiting = q.waiting[1:] // the earlier caller is still making its first attempt
	later.Signals()
	q.insert(earlier)
	earlier.Signals()
	require.NoError(t, earlier.Broken())
	require.True(t, broken.closed)
	replacement := &listening{}
	q.sub = replacement
	require.NoError(t, later.Broken())
	require.False(t, replacement.closed)
	require.Same(t, replacement, q.sub)
}
