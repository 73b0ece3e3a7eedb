package rueidis

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
)

// listening adapts a dedicated connection to a redigo connection for subscriptions.
//
// rueidis reports messages and acknowledgements through hooks, and returns error replies to the sender. While
// commands are in flight, acknowledgements are held back until their order relative to errors is known.
//
// A command must contain only one shard channel, because rueidis counts the acknowledgements of a command and would
// also count an unsubscription by the server.
type listening struct {
	*dedicated
	unflushed []order // used only by the sender

	wake chan struct{} // signaled after a flush
	come chan struct{} // signaled when the inbox is not empty

	mu      sync.Mutex // guards the fields below
	flushed []order
	busy    bool  // orders are in flight
	held    []ack // received while busy
	inbox   []any // replies, including redis.Error
}

type order struct {
	command  string
	channels []string
}

type ack struct {
	kind    string
	channel string
	count   int64
}

func listen(d *dedicated) *listening {
	l := &listening{dedicated: d, wake: make(chan struct{}, 1), come: make(chan struct{}, 1)}
	lost := d.client.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: l.message, OnSubscription: l.subscription})
	go l.run(lost)
	return l
}

func (l *listening) message(m rueidis.PubSubMessage) {
	l.mu.Lock()
	l.put([]any{[]byte("message"), []byte(m.Channel), []byte(m.Message)})
	l.mu.Unlock()
}

func (l *listening) subscription(s rueidis.PubSubSubscription) {
	a := ack{s.Kind, s.Channel, s.Count}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.busy {
		l.held = append(l.held, a)
		return
	}
	l.put(a.reply())
}

func (a ack) reply() any { return []any{[]byte(a.kind), []byte(a.channel), a.count} }

// put adds reply to the inbox. It is called with mu held.
func (l *listening) put(reply any) {
	l.inbox = append(l.inbox, reply)
	select {
	case l.come <- struct{}{}:
	default:
	}
}

func (l *listening) run(lost <-chan error) {
	for {
		select {
		case <-l.wake:
		case err := <-lost:
			_ = l.end(orClosed(err))
			return
		case <-l.closed:
			return
		}
		for batch := l.take(); len(batch) > 0; batch = l.take() {
			l.settle(batch, l.send(batch))
		}
	}
}

// take returns the next orders to send.
func (l *listening) take() []order {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for n < len(l.flushed) && n < together && len(l.flushed[n].channels) > 0 {
		n++
	}
	if n == 0 {
		n = min(1, len(l.flushed))
	}
	batch := l.flushed[:n:n]
	l.flushed = l.flushed[n:]
	l.busy = n > 0
	return batch
}

func (l *listening) send(batch []order) []rueidis.RedisResult {
	all := make([]rueidis.Completed, len(batch))
	for i, o := range batch {
		all[i] = o.build(l.client.B())
	}
	return l.client.DoMulti(context.Background(), all...)
}

func (o order) build(b rueidis.Builder) rueidis.Completed {
	switch o.command {
	case "SUBSCRIBE":
		return b.Subscribe().Channel(o.channels...).Build()
	case "UNSUBSCRIBE":
		return b.Unsubscribe().Channel(o.channels...).Build()
	case "SSUBSCRIBE":
		return b.Ssubscribe().Channel(o.channels...).Build()
	case "SUNSUBSCRIBE":
		return b.Sunsubscribe().Channel(o.channels...).Build()
	}
	return b.Arbitrary(o.command).Build()
}

func (l *listening) settle(batch []order, results []rueidis.RedisResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, o := range batch {
		reply, err := received(results[i])
		switch {
		case err == nil && len(o.channels) > 0:
			l.release(o)
		case err == nil:
			l.put(reply)
		case isRefusal(err):
			l.put(err)
		default:
			_ = l.end(err)
		}
	}
	for _, a := range l.held {
		l.put(a.reply())
	}
	l.held, l.busy = nil, false
}

// release moves the held acknowledgements to the inbox, up to and including the last one for o. It
// is called with mu held.
func (l *listening) release(o order) {
	for _, channel := range o.channels {
		i := slices.IndexFunc(l.held, func(a ack) bool {
			return a.channel == channel && strings.EqualFold(a.kind, o.command)
		})
		for _, a := range l.held[:i+1] {
			l.put(a.reply())
		}
		l.held = l.held[i+1:]
	}
}

func (l *listening) Send(command string, args ...any) error {
	l.unflushed = append(l.unflushed, order{command: command, channels: texts(args)})
	return l.Err()
}

func (l *listening) Flush() error {
	l.mu.Lock()
	l.flushed = append(l.flushed, l.unflushed...)
	l.mu.Unlock()
	clear(l.unflushed)
	l.unflushed = l.unflushed[:0]
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return l.Err()
}

// ReceiveWithTimeout closes the connection if a timeout other than zero expires.
func (l *listening) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	var late <-chan time.Time
	for {
		reply, ok := l.next()
		if err, refused := reply.(redis.Error); refused {
			return nil, err
		}
		if ok {
			return reply, nil
		}
		if late == nil && timeout > 0 {
			timer := time.NewTimer(timeout)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-l.come:
		case <-l.closed:
			return nil, l.err
		case <-late:
			return nil, l.end(context.DeadlineExceeded)
		}
	}
}

func (l *listening) next() (reply any, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.inbox) == 0 {
		return nil, false
	}
	reply = l.inbox[0]
	l.inbox[0] = nil
	if l.inbox = l.inbox[1:]; len(l.inbox) == 0 {
		l.inbox = nil
	}
	return reply, true
}

func (l *listening) DoWithTimeout(time.Duration, string, ...any) (any, error) {
	return nil, errListens
}
