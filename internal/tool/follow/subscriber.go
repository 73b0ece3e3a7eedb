package follow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/transport"
)

// family is a kind of channels: those of the plain, fair and fenced locks, or those of
// read/write locks.
type family struct {
	channel func(name string) string
	prefix  string
	// calls is true when it has channels for single waiters, too.
	calls bool
}

// families are the families of channels, the one of read/write locks last.
var families = [...]family{
	{codec.LockChannel, strings.TrimSuffix(codec.LockChannel("{"), "{"), true},
	{codec.ReadWriteChannel, strings.TrimSuffix(codec.ReadWriteChannel("{"), "{"), false},
}

// patterns returns the patterns of the channels of all locks whose names match, or of one lock, each
// channel being matched by one of them at most. They match other channels as well.
func (f *family) patterns(name string, isPattern bool) []string {
	if !isPattern {
		channel := inspect.Literal(f.channel(name))
		if !f.calls {
			return []string{channel}
		}
		return []string{channel, channel + ":*"}
	}
	begins := name
	if i := strings.IndexAny(name, `*?[\`); i >= 0 {
		begins = name[:i]
	}
	switch {
	case begins == "":
		return []string{f.prefix + "*"}
	case begins[0] == '{':
		return []string{f.prefix + begins + "*"}
	}
	// Names without a brace of their own are put in braces, others are not.
	return []string{f.prefix + "{" + begins + "*", f.prefix + begins + "*"}
}

// Parse returns the name of the lock that a channel is of, and, when it calls one
// waiter of a fair lock, that waiter's owner. By the brace rule the channels of the
// names a and {a} are one: it is taken for that of a.
func Parse(channel string) (name, owner string) {
	if rest, is := strings.CutPrefix(channel, families[1].prefix); is {
		return inspect.Unbraced(rest), ""
	}
	rest := strings.TrimPrefix(channel, families[0].prefix)
	if i := strings.LastIndexByte(rest, ':'); i > 0 {
		if i = strings.LastIndexByte(rest[:i], ':'); i > 0 {
			if _, err := redlatch.ParseOwner(rest[i+1:]); err == nil {
				rest, owner = rest[:i], rest[i+1:]
			}
		}
	}
	return inspect.Unbraced(rest), owner
}

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
	Messages chan Message

	t    transport.Transport
	wg   sync.WaitGroup
	subs map[string]map[string]*channelSub // by lock and channel
}

// channelSub is the subscription to one channel, each message on which is a message like m.
type channelSub struct {
	m    Message
	sub  transport.Subscription
	done chan struct{}
}

// NewChannelSubscriber returns a ChannelSubscriber that subscribes through t.
func NewChannelSubscriber(t transport.Transport) *ChannelSubscriber {
	return &ChannelSubscriber{Messages: make(chan Message, backlog), t: t, subs: map[string]map[string]*channelSub{}}
}

// Follow listens to the channels of a lock, also to that which it has as a read/write lock,
// and to those of the first in its queue, and no longer to those of others. A channel that a server
// does not let us listen to within a second is left out until Follow is called again: with the next look.
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
				sub.m.At = time.Now()
				deliver(s.Messages, sub.m)
			}
		case <-sub.done:
			return
		}
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

// Close ends the listening for all locks.
func (s *ChannelSubscriber) Close() {
	for name := range s.subs {
		s.Forget(name)
	}
	s.wg.Wait()
}

const (
	// backlog is how many messages may wait to be read. What is more is dropped: each
	// of them is a reason to look, and there are enough.
	backlog = 1024
	// retryPause is the pause before a connection is made anew.
	retryPause = time.Second
)

// Message is a message on a lock's channel. Without a name it is about the connection: some
// messages may be missed from now on, when it has an error, or they arrive again.
type Message struct {
	// At is when it was received.
	At time.Time
	// Name is the lock's, Owner the waiter that is called, "" for all.
	Name, Owner string
	// Gap is why the connection was lost.
	Gap error
}

// PatternSubscriber receives the messages on the channels of locks through patterns.
type PatternSubscriber struct {
	// Messages delivers the messages. It is not closed.
	Messages chan Message

	dial     connect.Dialer
	patterns [len(families)][]string
	matches  func(name string) bool
	conn     redis.Conn // that SubscribePatterns has made
	unheard  error      // see Unheard
}

// SubscribePatterns connects and subscribes to the channels of the lock with a name, or of the locks whose
// names match a pattern. Messages that are published after it has returned are delivered by Run, which
// must follow. An error is dial's or the server's.
func SubscribePatterns(ctx context.Context, dial connect.Dialer, name string, isPattern bool) (*PatternSubscriber, error) {
	s := &PatternSubscriber{Messages: make(chan Message, backlog), dial: dial}
	for i := range families {
		s.patterns[i] = families[i].patterns(name, isPattern)
	}
	if s.matches = inspect.Match(name); !isPattern {
		channel := codec.LockChannel(name) // two names may have one channel
		s.matches = func(other string) bool { return codec.LockChannel(other) == channel }
	}
	var err error
	s.conn, err = s.subscribe(ctx)
	return s, err
}

// Unheard is the server's refusal of the channels of read/write locks, nil where it has
// confirmed them: a user that has no such locks needs no right to these channels. It is to
// be called before Run.
func (s *PatternSubscriber) Unheard() error { return s.unheard }

// subscribe connects and waits until the server has confirmed all patterns, or has refused
// those of read/write locks.
func (s *PatternSubscriber) subscribe(ctx context.Context) (redis.Conn, error) {
	c, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	var refused redis.Error
	err = s.psubscribe(c, 0)
	if err == nil {
		err = s.psubscribe(c, 1)
		if errors.As(err, &refused) {
			s.unheard, err = err, nil
		}
	}
	if err != nil {
		_ = c.Close() // refused, or broken
		return nil, err
	}
	return c, nil
}

// psubscribe subscribes to the patterns of a family. A user whose channels are limited may
// subscribe to just the patterns of the limit: where the patterns are refused, those of all
// locks' channels are tried.
func (s *PatternSubscriber) psubscribe(c redis.Conn, family int) error {
	all := families[family].patterns("*", true)
	err := confirmed(c, s.patterns[family])
	var refused redis.Error
	if errors.As(err, &refused) && !slices.Equal(s.patterns[family], all) {
		s.patterns[family] = all
		err = confirmed(c, all)
	}
	return err
}

// confirmed subscribes to patterns and waits until the server has confirmed each. A message
// that comes meanwhile is dropped: the first look at the locks is still to come.
func confirmed(c redis.Conn, patterns []string) error {
	sub := redis.PubSubConn{Conn: c}
	if err := sub.PSubscribe(redis.Args{}.AddFlat(patterns)...); err != nil {
		return err
	}
	for confirmed := 0; confirmed < len(patterns); {
		switch m := sub.Receive().(type) {
		case error:
			return m
		case redis.Subscription:
			confirmed++
		}
	}
	return nil
}

// Run delivers messages until ctx ends. It makes a new connection in place of one that is
// lost.
func (s *PatternSubscriber) Run(ctx context.Context) {
	for c := s.conn; c != nil; c = s.reconnect(ctx) {
		if err := s.read(ctx, c); ctx.Err() == nil {
			s.deliverGap(ctx, Message{At: time.Now(), Gap: err})
		}
	}
}

// reconnect returns a new connection, nil when ctx has ended.
func (s *PatternSubscriber) reconnect(ctx context.Context) redis.Conn {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryPause):
		}
		// One that fails is tried again: the next look reports the error.
		if c, err := s.subscribe(ctx); err == nil {
			s.deliverGap(ctx, Message{At: time.Now()})
			return c
		}
	}
}

// read reads messages until the connection is lost or ctx ends.
func (s *PatternSubscriber) read(ctx context.Context, c redis.Conn) error {
	// A connection knows nothing of ctx: closing it ends the read.
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer func() {
		stop()
		_ = c.Close() // broken, or at its end
	}()
	sub := redis.PubSubConn{Conn: c}
	for {
		switch m := sub.ReceiveWithTimeout(0).(type) {
		case error:
			return m
		case redis.Message:
			if name, owner := Parse(m.Channel); s.matches(name) {
				deliver(s.Messages, Message{At: time.Now(), Name: name, Owner: owner})
			}
		}
	}
}

// deliverGap delivers a gap, which is never dropped.
func (s *PatternSubscriber) deliverGap(ctx context.Context, m Message) {
	select {
	case s.Messages <- m:
	case <-ctx.Done():
	}
}

// deliver delivers a message, unless there are enough: each is a reason to look.
func deliver(messages chan<- Message, m Message) {
	select {
	case messages <- m:
	default:
	}
}
