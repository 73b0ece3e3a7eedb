package follow

import (
	"context"
	"sync"
	"time"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

const (
	// called is how many of the first in a queue are listened for: who is called is one
	// of them.
	called = 32
	// postWait bounds the wait for a server to say yes to a channel.
	postWait = time.Second
)

// Posts hear the messages of locks in a cluster, where a message may reach those alone
// who listen to just its channel: no pattern covers it. So they listen to the channels of
// the locks that are followed. Its methods are for one goroutine.
type Posts struct {
	// Heard delivers what was heard. It is not closed.
	Heard <-chan Message

	heard chan Message
	t     transport.Transport
	wg    sync.WaitGroup
	posts map[string]map[string]*post // by lock and channel
}

// post listens to one channel, each message on which is a message like m.
type post struct {
	m    Message
	sub  transport.Subscription
	over chan struct{}
}

// NewPosts returns posts that listen through t, which is closed with them.
func NewPosts(t transport.Transport) *Posts {
	heard := make(chan Message, backlog)
	return &Posts{Heard: heard, heard: heard, t: t, posts: map[string]map[string]*post{}}
}

// Follow listens to the channel of a lock and to those of the first in its queue, and no
// longer to those of others. A channel that a server does not let us listen to within a
// second is left out until Follow is called again: with the next look.
func (p *Posts) Follow(ctx context.Context, name string, queue []string) {
	mine := p.posts[name]
	if mine == nil {
		mine = map[string]*post{}
		p.posts[name] = mine
	}
	channel := codec.LockChannel(name)
	wanted := map[string]string{channel: ""} // whom it calls, by channel
	for _, owner := range queue[:min(len(queue), called)] {
		wanted[channel+":"+owner] = owner
	}
	for at, one := range mine {
		if _, still := wanted[at]; !still || one.sub.Err() != nil {
			one.end()
			delete(mine, at)
		}
	}
	for at, owner := range wanted {
		if mine[at] == nil {
			p.listen(ctx, mine, at, Message{Name: name, Owner: owner})
		}
	}
}

// listen makes a post for a channel.
func (p *Posts) listen(ctx context.Context, mine map[string]*post, channel string, m Message) {
	ctx, cancel := context.WithTimeout(ctx, postWait)
	defer cancel()
	sub, err := p.t.Subscribe(ctx, channel)
	if err != nil {
		return // what is wrong, the looks tell
	}
	one := &post{m: m, sub: sub, over: make(chan struct{})}
	mine[channel] = one
	p.wg.Go(func() { p.hear(one) })
}

// hear hands messages on until the post ends. A gap is none: the next look finds what it
// has hidden.
func (p *Posts) hear(one *post) {
	for {
		select {
		case e, ok := <-one.sub.Events():
			if !ok {
				return
			}
			if !e.Gap {
				p.tell(one.m)
			}
		case <-one.over:
			return
		}
	}
}

func (p *Posts) tell(m Message) {
	m.At = time.Now()
	select {
	case p.heard <- m:
	default: // each is a reason to look, and there are enough
	}
}

func (one *post) end() {
	close(one.over)
	one.sub.Close()
}

// Forget ends the listening for a lock.
func (p *Posts) Forget(name string) {
	for _, one := range p.posts[name] {
		one.end()
	}
	delete(p.posts, name)
}

// Close ends all, and waits for it.
func (p *Posts) Close() error {
	err := p.t.Close()
	p.wg.Wait()
	return err
}
