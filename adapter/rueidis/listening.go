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

// listening gives a dedicated connection the shape of a redigo connection that is
// subscribed to channels: what Send and Flush hand over is sent by a goroutine of its
// own, and Receive returns what comes, in the order in which it came.
//
// rueidis tells of messages and acknowledgements through hooks, on its reader, and of
// refusals where the command was sent. While commands are under way, acknowledgements
// are held back until their order with refusals is known.
//
// Channels of a shard must come one by one, as they do: rueidis counts the
// acknowledgements of a command with several, and would count an unsubscription by the
// server, when a slot moves, among them.
type listening struct {
	*dedicated
	unflushed []order // the sender's

	wake chan struct{} // something was flushed
	come chan struct{} // something is in the inbox

	mu      sync.Mutex // guards what follows
	flushed []order
	busy    bool  // orders are under way
	held    []ack // that came meanwhile
	inbox   []any // replies, a redis.Error among them
}

// order is a command.
type order struct {
	command  string
	channels []string
}

// ack is what the server says of one subscription.
type ack struct {
	kind    string
	channel string
	count   int64
}

var _ redis.ConnWithTimeout = (*listening)(nil)

// listen makes d a connection that listens.
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

// put adds to the inbox, mu held.
func (l *listening) put(reply any) {
	l.inbox = append(l.inbox, reply)
	select {
	case l.come <- struct{}{}:
	default:
	}
}

// run sends what was flushed until the connection is lost or closed.
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

// take returns the orders to send together: a PING is sent alone.
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

// settle puts into the inbox what the server said to a batch.
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

// release puts what is held into the inbox, up to the last answer to o that is there,
// mu held.
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

// Send implements redis.Conn.
func (l *listening) Send(command string, args ...any) error {
	l.unflushed = append(l.unflushed, order{command: command, channels: texts(args)})
	return l.Err()
}

// Flush implements redis.Conn.
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

// ReceiveWithTimeout implements redis.ConnWithTimeout. A timeout, zero is none, ends
// the connection.
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

// Receive implements redis.Conn.
func (l *listening) Receive() (any, error) { return l.ReceiveWithTimeout(0) }

// Do implements redis.Conn. A connection that listens has no replies to wait for: the
// error is always the same.
func (l *listening) Do(string, ...any) (any, error) { return nil, errListens }

// DoWithTimeout implements redis.ConnWithTimeout. It is Do.
func (l *listening) DoWithTimeout(time.Duration, string, ...any) (any, error) {
	return nil, errListens
}
