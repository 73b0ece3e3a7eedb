package transporttest

import (
	"context"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// counter skips where the transport cannot count.
func (f *fixture) counter() (transport.Transport, transport.Counter) {
	f.t.Helper()
	tr := f.opened()
	return tr, as[transport.Counter](f, tr, "Counter")
}

// listeners counts and must succeed.
func (f *fixture) listeners(c transport.Counter, channels ...string) []int64 {
	f.t.Helper()
	ctx, cancel := f.soon()
	defer cancel()
	counts, err := c.Listeners(ctx, channels...)
	require.NoError(f.t, err, "Listeners")
	return counts
}

func listenersCounted(f *fixture) {
	tr, c := f.counter()
	one, none, two := f.name(), f.name(), f.name()
	f.subscribe(tr, one)
	again := f.subscribe(tr, two)
	// The other connection that listens is another transport's.
	f.subscribe(f.open(), two)
	assert.Equal(f.t, []int64{1, 0, 2}, f.listeners(c, one, none, two))
	assert.Equal(f.t, []int64{2, 0, 1}, f.listeners(c, two, none, one))
	assert.Equal(f.t, []int64{2, 2}, f.listeners(c, two, two), "a channel asked for twice")
	assert.Empty(f.t, f.listeners(c), "no channel")
	f.subscribe(tr, two)
	assert.Equal(f.t, []int64{2}, f.listeners(c, two), "connections are counted, not the subscriptions that share one")
	again.Close()
	assert.Equal(f.t, []int64{2}, f.listeners(c, two))
}

func listenersMany(f *fixture) {
	tr, c := f.counter()
	// As many as a heartbeat asks for, and more.
	channels, want := make([]string, 200), make([]int64, 200)
	for i := range channels {
		channels[i] = f.name()
		if i%3 == 0 {
			f.subscribe(tr, channels[i])
			want[i] = 1
		}
	}
	assert.Equal(f.t, want, f.listeners(c, channels...))
}

func listenersUnknown(f *fixture) {
	f.need("Stop", f.h.Stop != nil && f.h.Start != nil)
	tr, c := f.counter()
	channel := f.name()
	require.Equal(f.t, []int64{0}, f.listeners(c, channel))
	start := f.stopped(tr)
	ctx, cancel := f.soon()
	defer cancel()
	counts, err := c.Listeners(ctx, channel)
	require.Error(f.t, err, "the server is down, and yet the answer is %v", counts)
	assert.Empty(f.t, counts)
	f.inContract(err)
	start()
	f.recovers(tr)
	assert.Equal(f.t, []int64{0}, f.listeners(c, channel))
	f.close(tr)
	_, err = c.Listeners(ctx, channel)
	assert.ErrorIs(f.t, err, transport.ErrClosed)
}

func listenersForbidden(f *fixture) {
	f.need("Forbid", f.h.Forbid != nil)
	tr, c := f.counter()
	channel := f.name()
	f.subscribe(tr, channel)
	require.Equal(f.t, []int64{1}, f.listeners(c, channel))
	f.h.Forbid(f.t, "PUBSUB")
	ctx, cancel := f.soon()
	defer cancel()
	counts, err := c.Listeners(ctx, channel)
	require.Error(f.t, err, "it is forbidden, and yet the answer is %v", counts)
	assert.Empty(f.t, counts)
	assert.True(f.t, transport.IsCode(err, "NOPERM"), "%v", err)
	f.inContract(err)
	f.recovers(tr)
}

func listenersEndedContext(f *fixture) {
	f.need("HoldReplies", f.h.HoldReplies != nil)
	tr, c := f.counter()
	channel := f.name()
	require.Equal(f.t, []int64{0}, f.listeners(c, channel))
	release := f.holdReplies()
	ctx, cancel := context.WithTimeout(f.t.Context(), 50*time.Millisecond)
	defer cancel()
	began := time.Now()
	counts, err := c.Listeners(ctx, channel)
	require.ErrorIs(f.t, err, context.DeadlineExceeded)
	assert.Empty(f.t, counts)
	assert.Less(f.t, time.Since(began), atOnce)
	release()
	f.recovers(tr)
	assert.Equal(f.t, []int64{0}, f.listeners(c, channel))
}
