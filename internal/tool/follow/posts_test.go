package follow

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// boards are a transport with channels alone.
type boards struct {
	transport.Transport
	mu   sync.Mutex // guards what follows
	deaf bool
	subs map[string]*board // that are not closed, by channel
}

// board is a subscription.
type board struct {
	of      *boards
	channel string
	events  chan transport.Event
	err     error
}

func (b *boards) Subscribe(_ context.Context, channel string) (transport.Subscription, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.deaf {
		return nil, errors.New("no")
	}
	sub := &board{of: b, channel: channel, events: make(chan transport.Event, 1)}
	b.subs[channel] = sub
	return sub, nil
}

func (b *boards) Close() error {
	for _, sub := range b.subs {
		close(sub.events)
	}
	return nil
}

func (b *boards) channels() (all []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for channel := range b.subs {
		all = append(all, channel)
	}
	return all
}

func (b *board) Events() <-chan transport.Event { return b.events }

func (b *board) Err() error { return b.err }

func (b *board) Close() {
	b.of.mu.Lock()
	defer b.of.mu.Unlock()
	delete(b.of.subs, b.channel)
}

func TestPostsListenToALockAndTheFirstOfItsQueue(t *testing.T) {
	t.Parallel()
	b := &boards{subs: map[string]*board{}}
	p := NewPosts(b)
	channel := codec.LockChannel("jobs")
	p.Follow(t.Context(), "jobs", nil)
	require.ElementsMatch(t, []string{channel}, b.channels())
	p.Follow(t.Context(), "jobs", []string{"one", "two"})
	require.ElementsMatch(t, []string{channel, channel + ":one", channel + ":two"}, b.channels())

	b.subs[channel].events <- transport.Event{Gap: true}
	b.subs[channel].events <- transport.Event{Payload: "0"}
	m := <-p.Heard
	require.Equal(t, "jobs", m.Name)
	require.Empty(t, m.Owner)
	require.False(t, m.At.IsZero())
	b.subs[channel+":two"].events <- transport.Event{Payload: "0"}
	require.Equal(t, "two", (<-p.Heard).Owner)

	many := make([]string, 2*called)
	for i := range many {
		many[i] = string(rune('A' + i))
	}
	p.Follow(t.Context(), "jobs", many)
	require.Len(t, b.channels(), 1+called, "those who left are not listened for, nor those far behind")
	p.Follow(t.Context(), "other", nil)
	p.Forget("jobs")
	require.ElementsMatch(t, []string{codec.LockChannel("other")}, b.channels())
	require.NoError(t, p.Close())
}

func TestAPostThatFailedIsMadeAnewWithTheNextLook(t *testing.T) {
	t.Parallel()
	b := &boards{subs: map[string]*board{}, deaf: true}
	p := NewPosts(b)
	p.Follow(t.Context(), "jobs", nil)
	require.Empty(t, b.channels())
	b.deaf = false
	p.Follow(t.Context(), "jobs", nil)
	first := b.subs[codec.LockChannel("jobs")]
	require.NotNil(t, first)
	p.Follow(t.Context(), "jobs", nil)
	require.Same(t, first, b.subs[codec.LockChannel("jobs")])
	first.err = errors.New("revoked")
	close(first.events)
	p.Follow(t.Context(), "jobs", nil)
	require.NotSame(t, first, b.subs[codec.LockChannel("jobs")])
	require.NoError(t, p.Close())
}
