package follow

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/tool/connect"
	"github.com/redlatch/redlatch/internal/tool/inspect"
	"github.com/redlatch/redlatch/transport"
)

// family describes the channels of plain, fair and fenced locks, or of read/write locks.
type family struct {
	channel func(name string) string
	prefix  string
	calls   bool
}

// The family of read/write locks must come last.
var families = [...]family{
	{codec.LockChannel, strings.TrimSuffix(codec.LockChannel("{"), "{"), true},
	{protocol.ReadWriteChannel, strings.TrimSuffix(protocol.ReadWriteChannel("{"), "{"), false},
}

// patterns returns patterns for the channels of a lock, or of all locks with matching names. They
// may also match other channels, but no channel matches two patterns.
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
	// Redisson adds braces to names without braces.
	return []string{f.prefix + "{" + begins + "*", f.prefix + begins + "*"}
}

// Parse returns the lock's name and, for the channel of a fair lock's waiter, the owner. The names
// a and {a} share a channel, for which Parse returns a.
func Parse(channel string) (name, owner string) {
	if rest, is := strings.CutPrefix(channel, families[1].prefix); is {
		return inspect.Unbraced(rest), ""
	}
	rest := strings.TrimPrefix(channel, families[0].prefix)
	if i := strings.LastIndexByte(rest, ':'); i > 0 {
		if i = strings.LastIndexByte(rest[:i], ':'); i > 0 {
			if _, err := codec.ParseOwner(rest[i+1:]); err == nil {
				rest, owner = rest[:i], rest[i+1:]
			}
		}
	}
	return inspect.Unbraced(rest), owner
}

const (
	// firstWaiters is the number of waiters to whose channels Follow subscribes.
	firstWaiters  = 32
	subscribeWait = time.Second
)

// ChannelSubscriber receives messages about locks in a cluster, where patterns do not match sharded
// messages. It is not safe for concurrent use.
type ChannelSubscriber struct {
	// Messages is never closed.
	Messages chan Message

	t    transport.Transport
	wg   sync.WaitGroup
	subs map[string]map[string]*channelSub // by lock and channel
}

type channelSub struct {
	m    Message
	sub  transport.Subscription
	done chan struct{}
}

// NewChannelSubscriber returns a ChannelSubscriber that uses t.
func NewChannelSubscriber(t transport.Transport) *ChannelSubscriber {
	return &ChannelSubscriber{Messages: make(chan Message, backlog), t: t, subs: map[string]map[string]*channelSub{}}
}

// Follow subscribes to the channels of a lock, including its channel as a read/write lock, and to
// the channels of its first waiters. It unsubscribes from the channels of owners that have left
// this part of the queue. If the server does not confirm a channel within a second, Follow skips it
// until the next call.
func (s *ChannelSubscriber) Follow(ctx context.Context, name string, queue []admin.Waiter) {
	mine := s.subs[name]
	if mine == nil {
		mine = map[string]*channelSub{}
		s.subs[name] = mine
	}
	channel := codec.LockChannel(name)
	wanted := map[string]string{channel: "", protocol.ReadWriteChannel(name): ""} // from channel to waiter
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

// read ignores gaps, because the next look finds the changes.
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

// Forget unsubscribes from a lock.
func (s *ChannelSubscriber) Forget(name string) {
	for _, sub := range s.subs[name] {
		sub.close()
	}
	delete(s.subs, name)
}

// Close unsubscribes from all locks.
func (s *ChannelSubscriber) Close() {
	for name := range s.subs {
		s.Forget(name)
	}
	s.wg.Wait()
}

const (
	backlog    = 1024
	retryPause = time.Second
)

// Message is a message on a lock's channel. A message without a name is about the connection: if
// Gap is set, messages may be lost from now on; otherwise, messages are being received again.
type Message struct {
	At time.Time
	// Owner is the waiter to wake, or "" for all waiters.
	Name, Owner string
	Gap         error
}

// PatternSubscriber receives messages about locks by using patterns.
type PatternSubscriber struct {
	// Messages is never closed.
	Messages chan Message

	dial     connect.Dialer
	patterns [len(families)][]string
	matches  func(name string) bool
	conn     redis.Conn // made by SubscribePatterns for Run
	unheard  error
}

// SubscribePatterns subscribes to the channels of one lock, or of all locks whose names match a
// pattern. The caller must call Run, which delivers all messages since this call.
func SubscribePatterns(ctx context.Context, dial connect.Dialer, name string, isPattern bool) (*PatternSubscriber, error) {
	s := &PatternSubscriber{Messages: make(chan Message, backlog), dial: dial}
	for i := range families {
		s.patterns[i] = families[i].patterns(name, isPattern)
	}
	if s.matches = inspect.Match(name); !isPattern {
		channel := codec.LockChannel(name) // two names may share a channel
		s.matches = func(other string) bool { return codec.LockChannel(other) == channel }
	}
	var err error
	s.conn, err = s.subscribe(ctx)
	return s, err
}

// Unheard returns the server's refusal to subscribe to the channels of read/write locks, which not
// every user may do, or nil if the server confirmed them. It must be called before Run.
func (s *PatternSubscriber) Unheard() error { return s.unheard }

// subscribe waits until the server has confirmed all patterns or ctx ends. The patterns of read/write
// locks may be refused.
func (s *PatternSubscriber) subscribe(ctx context.Context) (redis.Conn, error) {
	c, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
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

// psubscribe falls back to the pattern for all locks, which may be the only one that the user may
// subscribe to.
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

// confirmed subscribes and waits until the server has confirmed all patterns. It drops any
// messages, because the first look comes later.
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

// Run delivers messages until ctx ends, and reconnects as needed.
func (s *PatternSubscriber) Run(ctx context.Context) {
	for c := s.conn; c != nil; c = s.reconnect(ctx) {
		if err := s.read(ctx, c); ctx.Err() == nil {
			s.deliverGap(ctx, Message{At: time.Now(), Gap: err})
		}
	}
}

// reconnect retries until ctx ends, and then returns nil.
func (s *PatternSubscriber) reconnect(ctx context.Context) redis.Conn {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retryPause):
		}
		// The next look reports the error.
		if c, err := s.subscribe(ctx); err == nil {
			s.deliverGap(ctx, Message{At: time.Now()})
			return c
		}
	}
}

func (s *PatternSubscriber) read(ctx context.Context, c redis.Conn) error {
	stop := context.AfterFunc(ctx, func() { _ = c.Close() }) // ends the read
	defer func() {
		stop()
		_ = c.Close()
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

// deliverGap blocks instead of dropping its message.
func (s *PatternSubscriber) deliverGap(ctx context.Context, m Message) {
	select {
	case s.Messages <- m:
	case <-ctx.Done():
	}
}

// deliver drops the message if the channel is full.
func deliver(messages chan<- Message, m Message) {
	select {
	case messages <- m:
	default:
	}
}
