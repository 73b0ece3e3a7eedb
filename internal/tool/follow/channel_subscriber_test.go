package follow

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// fakeTransport are a transport with channels alone.
type fakeTransport struct {
	transport.Transport
	mu     sync.Mutex // guards what follows
	refuse bool
	subs   map[string]*fakeSubscription // that are not closed, by channel
}

// fakeSubscription is a subscription.
type fakeSubscription struct {
	transport *fakeTransport
	channel   string
	events    chan transport.Event
	err       error
}

func (b *fakeTransport) Subscribe(_ context.Context, channel string) (transport.Subscription, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.refuse {
		return nil, errors.New("no")
	}
	sub := &fakeSubscription{transport: b, channel: channel, events: make(chan transport.Event, 1)}
	b.subs[channel] = sub
	return sub, nil
}

func (b *fakeTransport) Close() error {
	for _, sub := range b.subs {
		close(sub.events)
	}
	return nil
}

func (b *fakeTransport) channels() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for channel := range b.subs {
		all = append(all, channel)
	}
	return all
}

func (b *fakeSubscription) Events() <-chan transport.Event { return b.events }

func (b *fakeSubscription) Err() error { return b.err }

func (b *fakeSubscription) Close() {
	b.transport.mu.Lock()
	defer b.transport.mu.Unlock()
	delete(b.transport.subs, b.channel)
}

func TestChannelSubscriberListensToALockAndTheFirstOfItsQueue(t *testing.T) {
	t.Parallel()
	b := &fakeTransport{subs: map[string]*fakeSubscription{}}
	s := NewChannelSubscriber(b)
	channel, rw := codec.LockChannel("jobs"), codec.ReadWriteChannel("jobs")
	s.Follow(t.Context(), "jobs", nil)
	require.ElementsMatch(t, []string{channel, rw}, b.channels())
	s.Follow(t.Context(), "jobs", []admin.Waiter{{Text: "one"}, {Text: "two"}})
	require.ElementsMatch(t, []string{channel, rw, channel + ":one", channel + ":two"}, b.channels())

	b.subs[channel].events <- transport.Event{Gap: true}
	b.subs[channel].events <- transport.Event{Payload: "0"}
	m := <-s.Messages
	require.Equal(t, "jobs", m.Name)
	require.Empty(t, m.Owner)
	require.False(t, m.At.IsZero())
	b.subs[rw].events <- transport.Event{Payload: "1"}
	m = <-s.Messages
	require.Equal(t, Message{At: m.At, Name: "jobs"}, m)
	b.subs[channel+":two"].events <- transport.Event{Payload: "0"}
	require.Equal(t, "two", (<-s.Messages).Owner)

	many := make([]admin.Waiter, 2*firstWaiters)
	for i := range many {
		many[i].Text = string(rune('A' + i))
	}
	s.Follow(t.Context(), "jobs", many)
	require.Len(t, b.channels(), 2+firstWaiters, "owners that left have no subscription, nor those far behind")
	s.Follow(t.Context(), "other", nil)
	s.Forget("jobs")
	require.ElementsMatch(t, []string{codec.LockChannel("other"), codec.ReadWriteChannel("other")}, b.channels())
	require.NoError(t, s.Close())
}

func TestAFailedSubscriptionIsMadeAnewWithTheNextLook(t *testing.T) {
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
	require.NoError(t, s.Close())
}
