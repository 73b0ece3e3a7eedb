package transporttest

import (
	"context"
	"runtime"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

var optionalCases = []testCase{
	{"Fence: a call whose connection was cut never runs afterwards", fenceAfterCut, "HoldRequest CutConnections"},
	{"Fence: a call abandoned on a working connection has ended", fenceWhileConnected, ""},
	{"Fence: a call that was never sent, or by another client, cannot be fenced", fenceUnknown, ""},
	{"Fence: returns an error while the server is down", fenceWhileDown, "Stop Start"},
	{"Fence: an ended context ends it", fenceEndedContext, "HoldReplies"},
	{"Reconnected: the channel is closed at the next reconnect, and not before", reconnected, "CutConnections"},
	{"Listeners: returns one number per channel, in order, 0 without subscribers", listenersCounted, ""},
	{"Listeners: many channels are counted together", listenersMany, ""},
	{"Listeners: an unknown count is an error, not zero", listenersUnknown, "Stop Start"},
	{"Listeners: a refused count is an error, not zero", listenersForbidden, "Forbid"},
	{"Listeners: an ended context ends it", listenersEndedContext, "HoldReplies"},
	{"Slot: keys have the same slots as in Redis", slots, ""},
}

func as[I any](f *fixture, tr transport.Transport, name string) I {
	f.t.Helper()
	i, ok := tr.(I)
	if !ok {
		f.t.Skipf("%T does not implement %s", tr, name)
	}
	return i
}

func (f *fixture) fencer() (transport.Transport, transport.Fencer) {
	f.t.Helper()
	tr := f.opened()
	fencer := as[transport.Fencer](f, tr, "Fencer")
	call := command("ECHO", 0, "who am I")
	require.NoError(f.t, f.do(tr, call).err)
	if call.Conn() == 0 {
		f.t.Skip("the transport does not know its connections on this server")
	}
	return tr, fencer
}

func (f *fixture) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(f.t.Context(), d)
	f.t.Cleanup(cancel)
	return ctx
}

func fenceAfterCut(f *fixture) {
	tr, fencer := f.fencer()
	key, release, p := f.cutBeforeServer(tr)
	f.isUncertain(f.await(p))
	ctx := f.within(f.h.Patience)
	require.NoError(f.t, fencer.Fence(ctx, p.call), "Fence")
	release()
	f.during(300*time.Millisecond, "the call has not run", func() bool { return f.value(key) == "" })
	assert.NoError(f.t, fencer.Fence(ctx, p.call), "Fence once more")
	f.recovers(tr)
}

func fenceWhileConnected(f *fixture) {
	tr, fencer := f.fencer()
	ctx := f.within(f.h.Patience)
	fenced := 0
	for range 100 {
		key := f.name()
		p := f.start(tr, eval(count, 1, key))
		for p.call.Conn() == 0 && p.runs.Load() == 0 {
			runtime.Gosched()
		}
		if p.call.Abandon() {
			f.isNotSent(f.await(p))
			continue
		}
		fenced++
		require.NoError(f.t, fencer.Fence(ctx, p.call), "Fence")
		after := f.value(key)
		o := f.await(p)
		assert.Equal(f.t, after, f.value(key), "the call ran after Fence had returned, and then ended with %v", o.err)
	}
	assert.NotZero(f.t, fenced, "no call was ever sent")
}

func fenceUnknown(f *fixture) {
	_, fencer := f.fencer()
	ctx := f.within(f.h.Patience)
	assert.Error(f.t, fencer.Fence(ctx, command("PING", 0)), "a call that was never sent")
	foreign := command("PING", 0)
	foreign.Claim(1 << 50)
	assert.Error(f.t, fencer.Fence(ctx, foreign), "a call on a connection that is not the transport's")
}

func fenceWhileDown(f *fixture) {
	tr, fencer := f.fencer()
	call := command("ECHO", 0, "before")
	require.NoError(f.t, f.do(tr, call).err)
	start := f.stopped(tr)
	ctx := f.within(f.h.Patience)
	assert.Error(f.t, fencer.Fence(ctx, call))
	start()
	f.recovers(tr)
}

func fenceEndedContext(f *fixture) {
	tr, fencer := f.fencer()
	p, _, release := f.inFlight(tr)
	assert.False(f.t, p.call.Abandon())
	ctx := f.within(50 * time.Millisecond)
	began := time.Now()
	err := fencer.Fence(ctx, p.call)
	assert.Error(f.t, err, "the call is still unanswered")
	assert.Less(f.t, time.Since(began), atOnce)
	release()
	f.inContract(f.await(p).err)
	f.recovers(tr)
}

func reconnected(f *fixture) {
	tr := f.opened()
	r := as[transport.Reconnecter](f, tr, "Reconnecter")
	for range 5 {
		next := r.Reconnected()
		f.recovers(tr)
		select {
		case <-next:
			f.t.Fatal("nothing was reconnected, and the channel is closed")
		default:
		}
		f.h.CutConnections(f.t)
		f.eventually("the channel is closed", func() bool {
			f.do(tr, command("ECHO", 0, "somebody needs a connection"))
			select {
			case <-next:
				return true
			default:
				return false
			}
		})
		f.recovers(tr)
	}
	f.close(tr)
	assert.NotPanics(f.t, func() { r.Reconnected() }, "after Close")
}

func slots(f *fixture) {
	s := as[transport.Slotter](f, f.open(), "Slotter")
	for key, want := range map[string]int{
		"":                      0,
		"123456789":             12739,
		"foo":                   12182,
		"bar":                   5061,
		"a{b":                   13340,
		"}{x}":                  16287,
		"user1000":              3443,
		"{user1000}.following":  3443,
		"foo{}{bar}":            8363, // empty tags are ignored
		"foo{{bar}}zap":         4015,
		"foo{bar}{zap}":         5061, // the first tag counts
		"lock__channel:{foo}":   12182,
		"lock__channel:{foo}:1": 12182,
	} {
		assert.Equal(f.t, want, s.Slot(key), "%q", key)
	}
	slot := s.Slot(f.name())
	assert.True(f.t, slot >= 0 && slot < 16384, "%d", slot)
}

func (f *fixture) counter() (transport.Transport, transport.Counter) {
	f.t.Helper()
	tr := f.opened()
	return tr, as[transport.Counter](f, tr, "Counter")
}

func (f *fixture) listeners(c transport.Counter, channels ...string) []int64 {
	f.t.Helper()
	ctx := f.within(f.h.Patience)
	counts, err := c.Listeners(ctx, channels...)
	require.NoError(f.t, err, "Listeners")
	return counts
}

func listenersCounted(f *fixture) {
	tr, c := f.counter()
	one, none, two := f.name(), f.name(), f.name()
	f.subscribe(tr, one)
	again := f.subscribe(tr, two)
	// The second connection belongs to another transport.
	f.subscribe(f.open(), two)
	assert.Equal(f.t, []int64{1, 0, 2}, f.listeners(c, one, none, two))
	assert.Equal(f.t, []int64{2, 0, 1}, f.listeners(c, two, none, one))
	assert.Equal(f.t, []int64{2, 2}, f.listeners(c, two, two), "a channel counted twice")
	assert.Empty(f.t, f.listeners(c), "no channel")
	f.subscribe(tr, two)
	assert.Equal(f.t, []int64{2}, f.listeners(c, two), "connections are counted, not the subscriptions that share one")
	again.Close()
	assert.Equal(f.t, []int64{2}, f.listeners(c, two))
}

func listenersMany(f *fixture) {
	tr, c := f.counter()
	// There are more channels than a heartbeat counts.
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
	tr, c := f.counter()
	channel := f.name()
	require.Equal(f.t, []int64{0}, f.listeners(c, channel))
	start := f.stopped(tr)
	ctx := f.within(f.h.Patience)
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
	tr, c := f.counter()
	channel := f.name()
	f.subscribe(tr, channel)
	require.Equal(f.t, []int64{1}, f.listeners(c, channel))
	f.h.Forbid(f.t, "PUBSUB")
	ctx := f.within(f.h.Patience)
	counts, err := c.Listeners(ctx, channel)
	require.Error(f.t, err, "it is forbidden, and yet the answer is %v", counts)
	assert.Empty(f.t, counts)
	assert.True(f.t, transport.IsCode(err, "NOPERM"), "%v", err)
	f.inContract(err)
	f.recovers(tr)
}

func listenersEndedContext(f *fixture) {
	tr, c := f.counter()
	channel := f.name()
	require.Equal(f.t, []int64{0}, f.listeners(c, channel))
	release := f.holdReplies()
	ctx := f.within(50 * time.Millisecond)
	began := time.Now()
	counts, err := c.Listeners(ctx, channel)
	require.ErrorIs(f.t, err, context.DeadlineExceeded)
	assert.Empty(f.t, counts)
	assert.Less(f.t, time.Since(began), atOnce)
	release()
	f.recovers(tr)
	assert.Equal(f.t, []int64{0}, f.listeners(c, channel))
}
