package follow

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/scripted"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/transport"
)

const owner = "71b96ce8-2746-4b0e-9d5f-3f6f0b8f3a11:57"

func TestChannelsNameLockAndWaiter(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"orders", "orders:42", "a}b", "{eu}orders", "x{y", "a:b:c", "ä ö"} {
		for channel, owner := range map[string]string{codec.LockChannel(name): "", protocol.OwnerChannel(name, owner): owner, protocol.ReadWriteChannel(name): ""} {
			got, called := Parse(channel)
			require.Equal(t, name, got)
			require.Equal(t, owner, called)
		}
	}
	name, called := Parse(codec.LockChannel("{a}"))
	require.Equal(t, "a", name, "they have one channel")
	require.Empty(t, called)
}

// A message that matches two patterns would be received twice.
func TestOnePatternMatchesEachChannel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern string
		names   []string
	}{
		{"orders", []string{"orders"}},
		{"or*ders", []string{"orders", "or*ders"}},
		{"*", []string{"orders", "{eu}orders", "a{b", ""}},
		{"ord*", []string{"orders", "ord{er}s"}},
		{"{eu}*", []string{"{eu}orders", "{eu}"}},
		{"[ab]c", []string{"ac", "bc"}},
		{`a\*b`, []string{"a*b"}},
	} {
		var patterns []string
		for _, f := range families {
			patterns = append(patterns, f.patterns(c.pattern, inspect.IsPattern(c.pattern))...)
		}
		for _, name := range c.names {
			for _, channel := range []string{codec.LockChannel(name), protocol.OwnerChannel(name, owner), protocol.ReadWriteChannel(name)} {
				n := 0
				for _, p := range patterns {
					if inspect.Match(p)(channel) {
						n++
					}
				}
				require.Equal(t, 1, n, "%s by %v", channel, patterns)
			}
		}
	}
}

// fakeTransport records the open subscriptions by channel.
type fakeTransport struct {
	transport.Transport
	refuse bool
	subs   map[string]*fakeSubscription
}

type fakeSubscription struct {
	close  func()
	events chan transport.Event
	err    error
}

func (b *fakeTransport) Subscribe(_ context.Context, channel string) (transport.Subscription, error) {
	if b.refuse {
		return nil, errors.New("no")
	}
	b.subs[channel] = &fakeSubscription{close: func() { delete(b.subs, channel) }, events: make(chan transport.Event, 1)}
	return b.subs[channel], nil
}

func (b *fakeTransport) channels() []string { return slices.Collect(maps.Keys(b.subs)) }

func (b *fakeSubscription) Events() <-chan transport.Event { return b.events }

func (b *fakeSubscription) Err() error { return b.err }

func (b *fakeSubscription) Close() { b.close() }

func TestSubscriberListensToLockAndQueueHead(t *testing.T) {
	t.Parallel()
	b := &fakeTransport{subs: map[string]*fakeSubscription{}}
	s := NewChannelSubscriber(b)
	defer s.Close()
	channel, rw := codec.LockChannel("jobs"), protocol.ReadWriteChannel("jobs")
	s.Follow(t.Context(), "jobs", nil)
	require.ElementsMatch(t, []string{channel, rw}, b.channels())
	s.Follow(t.Context(), "jobs", []admin.Waiter{{Text: "one"}, {Text: "two"}})
	require.ElementsMatch(t, []string{channel, rw, channel + ":one", channel + ":two"}, b.channels())

	b.subs[channel].events <- transport.Event{Gap: true}
	for at, owner := range map[string]string{channel: "", rw: "", channel + ":two": "two"} {
		b.subs[at].events <- transport.Event{Payload: "0"}
		m := <-s.Messages
		require.Equal(t, Message{At: m.At, Name: "jobs", Owner: owner}, m)
		require.False(t, m.At.IsZero())
	}

	many := make([]admin.Waiter, 2*firstWaiters)
	for i := range many {
		many[i].Text = string(rune('A' + i))
	}
	s.Follow(t.Context(), "jobs", many)
	require.Len(t, b.channels(), 2+firstWaiters, "neither former owners nor owners far behind")
	s.Follow(t.Context(), "other", nil)
	s.Forget("jobs")
	require.ElementsMatch(t, []string{codec.LockChannel("other"), protocol.ReadWriteChannel("other")}, b.channels())
}

func TestNextLookRetriesFailedSubscription(t *testing.T) {
	t.Parallel()
	b := &fakeTransport{subs: map[string]*fakeSubscription{}, refuse: true}
	s := NewChannelSubscriber(b)
	s.Follow(t.Context(), "jobs", nil)
	require.Empty(t, b.channels())
	b.refuse = false
	s.Follow(t.Context(), "jobs", nil)
	first := b.subs[codec.LockChannel("jobs")]
	require.NotNil(t, first)
	s.Follow(t.Context(), "jobs", nil)
	require.Same(t, first, b.subs[codec.LockChannel("jobs")])
	first.err = errors.New("revoked")
	close(first.events)
	s.Follow(t.Context(), "jobs", nil)
	require.NotSame(t, first, b.subs[codec.LockChannel("jobs")])
	s.Close()
}

func TestMain(m *testing.M) { redistest.Main(m) }

const soon = 10 * time.Second

func listen(t *testing.T, s redistest.Target, pattern string) *PatternSubscriber {
	t.Helper()
	return run(t, func(ctx context.Context) (redis.Conn, error) { return redis.DialContext(ctx, "tcp", s.Addr()) }, pattern)
}

func run(t *testing.T, dial func(context.Context) (redis.Conn, error), pattern string) *PatternSubscriber {
	t.Helper()
	s, err := SubscribePatterns(t.Context(), dial, pattern, inspect.IsPattern(pattern))
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-over
	})
	return s
}

func next(t *testing.T, s *PatternSubscriber) Message {
	t.Helper()
	select {
	case m := <-s.Messages:
		return m
	case <-time.After(soon):
		require.FailNow(t, "no message arrived")
		return Message{}
	}
}

func TestMatchingLockMessagesAreReceived(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, s redistest.Target) {
		t.Helper()
		t.Parallel()
		sub, began := listen(t, s, "ord*[0-9]"), time.Now()
		for _, name := range []string{"orders", "ord{er}s:1", "other:1"} {
			s.Do(t, "PUBLISH", codec.LockChannel(name), protocol.MessageUnlock)
		}
		s.Do(t, "PUBLISH", protocol.OwnerChannel("orders:2", owner), protocol.MessageUnlock)
		s.Do(t, "PUBLISH", protocol.ReadWriteChannel("orders:3"), protocol.MessageUnlock)
		m := next(t, sub)
		require.Equal(t, Message{At: m.At, Name: "ord{er}s:1"}, m)
		m = next(t, sub)
		require.Equal(t, Message{At: m.At, Name: "orders:2", Owner: owner}, m)
		require.Equal(t, "orders:3", next(t, sub).Name, "a read/write lock")
		require.NoError(t, sub.Unheard())
		require.False(t, m.At.Before(began) || m.At.After(time.Now()), "%v", m.At)
	})
}

func TestLostConnectionIsReportedAndReplaced(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	sub := listen(t, s, "orders")
	require.Equal(t, 1, s.KillClients(t, "pubsub"))
	require.Error(t, next(t, sub).Gap)
	m := next(t, sub)
	require.Equal(t, Message{At: m.At}, m, "received again")
	s.Do(t, "PUBLISH", codec.LockChannel("orders"), protocol.MessageUnlock)
	require.Equal(t, "orders", next(t, sub).Name)
}

func TestLimitedUserListensToAllPermittedChannels(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	s.Do(t, "ACL", "SETUSER", "onlooker", "reset", "on", "nopass", "+psubscribe", "&redisson_lock__channel:*")
	dial := func(ctx context.Context) (redis.Conn, error) {
		return redis.DialContext(ctx, "tcp", s.Addr(), redis.DialUsername("onlooker"), redis.DialPassword("x"))
	}
	sub := run(t, dial, "orders")
	s.Do(t, "PUBLISH", codec.LockChannel("other"), protocol.MessageUnlock)
	s.Do(t, "PUBLISH", codec.LockChannel("orders"), protocol.MessageUnlock)
	require.Equal(t, "orders", next(t, sub).Name)
	require.ErrorContains(t, sub.Unheard(), "NOPERM", "read/write channels are rejected; the others still deliver")

	s.Do(t, "ACL", "SETUSER", "onlooker", "resetchannels", "&other*")
	_, err := SubscribePatterns(t.Context(), dial, "orders", false)
	require.ErrorContains(t, err, "NOPERM")
	require.Eventually(t, func() bool { return s.Clients(t) == 0 }, soon, 10*time.Millisecond, "it has hung up")
}

func TestSubscribingEndsWithContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &scripted.Server{}
		s.Replies(map[string]string{"PSUBSCRIBE": "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nb\r\n"}) // not confirmed
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := SubscribePatterns(ctx, s.Dial, "orders", false)
		require.Error(t, err)
		require.Equal(t, time.Second, time.Since(began))
	})
}
