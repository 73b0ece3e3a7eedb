package follow

import (
	"context"
	"sync"
	"time"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

const (
	// firstWaiters is how many of the first in a queue have their channels subscribed: the waiter
	// that is woken is one of them.
	firstWaiters = 32
	// subscribeWait bounds the wait for the confirmation of a subscription.
	subscribeWait = time.Second
)

// ChannelSubscriber receives the messages of locks in a cluster, where a message may reach only
// subscribers of just its channel: no pattern covers it. So it subscribes to the channels
// of the locks that are followed. Its methods are for one goroutine.
type ChannelSubscriber struct {
	// Messages delivers the messages. It is not closed.
	Messages <-chan Message

	messages chan Message
	t        transport.Transport
	wg       sync.WaitGroup
	subs     map[string]map[string]*channelSub // by lock and channel
}

// channelSub is the subscription to one channel, each message on which is a message like m.
type channelSub struct {
	m    Message
	sub  transport.Subscription
	done chan struct{}
}

// NewChannelSubscriber returns a ChannelSubscriber that subscribes through t, which is closed with it.
func NewChannelSubscriber(t transport.Transport) *ChannelSubscriber {
	heard := make(chan Message, backlog)
	return &ChannelSubscriber{Messages: heard, messages: heard, t: t, subs: map[string]map[string]*channelSub{}}
}

// Follow listens to the channels of a lock, also to that which it has as a read/write lock,
// and to those of the first in its queue, and no longer to those of others. A channel that a server does not let us listen to within a
// second is left out until Follow is called again: with the next look.
func (s *ChannelSubscriber) Follow(ctx context.Context, name string, queue []admin.Waiter) {
	mine := s.subs[name]
	if mine == nil {
		mine = map[string]*channelSub{}
		s.subs[name] = mine
	}
	channel := codec.LockChannel(name)
	wanted := map[string]string{channel: "", codec.ReadWriteChannel(name): ""} // the waiter that it wakes, by channel
	for _, w := range queue[:min(len(queue), firstWaiters)] {
		wanted[channel+":"+w.Text] = w.Text
	}
	for at, sub := range mine {
		if _, still := wanted[at]; !still || sub.sub.Err() != nil {
			sub.close()
			delete(mine, at)
		}
	}
	for at, owner := range wanted {
		if mine[at] == nil {
			s.subscribe(ctx, mine, at, Message{Name: name, Owner: owner})
		}
	}
}

// subscribe subscribes to a channel.
func (s *ChannelSubscriber) subscribe(ctx context.Context, mine map[string]*channelSub, channel string, m Message) {
	ctx, cancel := context.WithTimeout(ctx, subscribeWait)
	defer cancel()
	events, err := s.t.Subscribe(ctx, channel)
	if err != nil {
		return // the next look reports the error
	}
	sub := &channelSub{m: m, sub: events, done: make(chan struct{})}
	mine[channel] = sub
	s.wg.Go(func() { s.read(sub) })
}

// read delivers messages until the subscription ends. A gap is not reported: the next look
// finds what it has hidden.
func (s *ChannelSubscriber) read(sub *channelSub) {
	for {
		select {
		case e, ok := <-sub.sub.Events():
			if !ok {
				return
			}
			if !e.Gap {
				s.deliver(sub.m)
			}
		case <-sub.done:
			return
		}
	}
}

func (s *ChannelSubscriber) deliver(m Message) {
	m.At = time.Now()
	select {
	case s.messages <- m:
	default: // each is a reason to look, and there are enough
	}
}

func (sub *channelSub) close() {
	close(sub.done)
	sub.sub.Close()
}

// Forget ends the listening for a lock.
func (s *ChannelSubscriber) Forget(name string) {
	for _, sub := range s.subs[name] {
		sub.close()
	}
	delete(s.subs, name)
}

// Close ends all, and waits for it.
func (s *ChannelSubscriber) Close() error {
	err := s.t.Close()
	s.wg.Wait()
	return err
}
