// Package model checks that the steps of clients under faults are steps of docs/model/plain.pml. Run it from the root:
//
//	REDLATCH_TEST=all go test ./test/model -traces 10000 -seed 1
package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/transport"
)

// step is a step of a client that others can see.
type step struct {
	what       string
	who, owner int // the client, and the number of its owner
	value      int
	at         time.Duration
}

// world is a server, and the network between it and the clients. It records their steps.
type world struct {
	conn    redis.Conn
	sub     redis.PubSubConn
	began   time.Time
	steps   []step
	clients []*client
	flights sync.WaitGroup
	ids     int64

	mu   sync.Mutex // guards all fields; held while the server runs a command, which takes no fake time
	rand *rand.Rand
	real bool      // whether the server has another clock than the bubble
	ends time.Time // when the lock's lease ends, if real
}

func (w *world) add(s step) {
	s.at = time.Since(w.began)
	w.steps = append(w.steps, s)
}

func (w *world) emit(what string, who, owner, value int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(step{what: what, who: who, owner: owner, value: value})
}

func (w *world) drawn(n int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rand.IntN(n)
}

func (w *world) span(most time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pause(most)
}

// after runs f after a time.
func (w *world) after(d time.Duration, f func()) {
	w.flights.Go(func() {
		time.Sleep(d)
		f()
	})
}

// client is a client's transport.
type client struct {
	*world
	id      int
	latency time.Duration
	faults  int // per hundred calls and messages
	fences  bool

	// Guarded by mu.
	arrives time.Time // when the last call that was not delayed arrives
	subs    map[*subscription]struct{}
	fenced  map[int64]bool
	closed  bool
}

type fate int

const (
	normal    fate = iota
	notSent        // the call is not sent
	slow           // it and its reply take long
	lost           // its connection breaks, and it does not run
	replyLost      // its connection breaks, and it runs before or after that
)

// Start implements transport.Transport.
func (c *client) Start(call *transport.Call, done transport.Done) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ids++
	id, f := c.ids, normal
	if c.rand.IntN(100) < c.faults {
		f = fate(1 + c.rand.IntN(4))
	}
	what, owner := kindOf(call)
	if c.closed || f == notSent || !call.Claim(id) {
		c.add(step{what: "not sent " + what, who: c.id})
		c.flights.Go(func() { done(nil, transport.ErrNotSent) })
		return
	}
	name, args := call.Command, []any{}
	if call.Script != nil {
		name, args = "EVAL", []any{call.Script.Text(), call.NumKeys}
	}
	args = append(args, call.Args...)
	c.add(step{what: "send " + what, who: c.id, owner: owner})
	if f == lost || f == replyLost {
		c.after(c.pause(3*time.Second/2), func() {
			c.emit("fail "+what, c.id, owner, 0)
			done(nil, transport.ErrUncertain)
		})
	}
	switch f {
	case lost:
	case replyLost:
		c.after(c.latency+c.pause(3*time.Second/2), func() { _, _, _ = c.run(id, f, what, owner, name, args) })
	default:
		c.after(c.inOrder(f), func() {
			reply, back, err := c.run(id, f, what, owner, name, args)
			time.Sleep(back)
			if !call.Abandoned() {
				c.emit("reply "+what, c.id, owner, verdict(what, reply))
			}
			done(reply, err)
		})
	}
}

func (w *world) pause(most time.Duration) time.Duration {
	return time.Duration(w.rand.Int64N(int64(most)))
}

// inOrder returns the time that a call or a reply takes. It does not overtake another one.
func (c *client) inOrder(f fate) time.Duration {
	d := c.latency
	if f == slow {
		d += c.pause(3 * time.Second / 2)
	}
	at := time.Now().Add(d)
	if !at.After(c.arrives) {
		at = c.arrives.Add(time.Microsecond)
	}
	c.arrives = at
	return time.Until(at)
}

// run runs a call on the server, unless its connection was killed, and sends the messages that it publishes.
// It returns how long the reply takes.
func (c *client) run(id int64, f fate, what string, owner int, name string, args []any) (any, time.Duration, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fenced[id] {
		return nil, 0, transport.ErrUncertain
	}
	reply, sent, err := c.do(name, args...)
	v := verdict(what, reply)
	if v == 1 && what == "release" && !sent {
		v = unannounced
	}
	c.add(step{what: "run " + what, who: c.id, owner: owner, value: v})
	return reply, c.inOrder(f), err
}

// do runs a command and sends its messages.
func (w *world) do(name string, args ...any) (reply any, sent bool, err error) {
	w.age()
	reply, err = w.conn.Do(name, args...)
	w.look()
	var refusal redis.Error
	if errors.As(err, &refusal) {
		err = &transport.ServerError{Text: refusal.Error()}
	}
	if _, err := w.conn.Do("PUBLISH", channel, marker); err != nil {
		panic(err) // the server outlives the clients
	}
	for {
		switch m := w.sub.Receive().(type) {
		case redis.Message:
			if string(m.Data) == marker {
				return reply, sent, err
			}
			sent = true
			for _, c := range w.clients {
				c.publish(string(m.Data))
			}
		case error:
			panic(m)
		}
	}
}

// age sets the lock's remaining time on a real server. No time passes in the bubble while the server runs a command.
func (w *world) age() {
	if left := time.Until(w.ends); w.real && !w.ends.IsZero() {
		_, _ = w.conn.Do("PEXPIRE", key, left.Milliseconds()) // deletes it if the time is not positive
	}
}

func (w *world) look() {
	if w.real {
		w.ends = time.Time{}
		if left, err := redis.Int64(w.conn.Do("PTTL", key)); err == nil && left > 0 {
			w.ends = time.Now().Add(time.Duration(left) * time.Millisecond)
		}
	}
}

// kindOf returns the name of a call about the lock and the number of its owner.
func kindOf(call *transport.Call) (what string, owner int) {
	at := map[string]int{"acquire": 1, "renew": 1, "release": 2}[call.Name()]
	if at != 0 {
		text, _ := call.Args[at].(string)
		_, number, _ := strings.Cut(text, ":")
		owner, _ = strconv.Atoi(number)
	}
	return call.Name(), owner
}

// verdict returns 1 if the owner has the lock after an attempt or a renewal, or had it before a release.
func verdict(what string, reply any) int {
	switch all, _ := reply.([]any); {
	case what == "renew" && len(all) > 0:
		reply = all[0]
	case what == "acquire" && reply == nil:
		return 1
	}
	if reply == int64(1) {
		return 1
	}
	return 0
}

type subscription struct {
	*client
	events  chan transport.Event // not buffered: a step is recorded when the client receives
	pending bool                 // guarded by mu
}

// Subscribe implements transport.Transport.
func (c *client) Subscribe(ctx context.Context, _ string) (transport.Subscription, error) {
	time.Sleep(2 * c.latency)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%w: %w", transport.ErrUncertain, ctx.Err())
	case c.rand.IntN(100) < c.faults:
		return nil, transport.ErrNotSent
	}
	s := &subscription{client: c, events: make(chan transport.Event)}
	c.subs[s] = struct{}{}
	c.add(step{what: "listening", who: c.id})
	return s, nil
}

// publish sends a message to the client, or after some time a gap instead.
func (c *client) publish(text string) {
	for s := range c.subs {
		d, event, what := c.latency, transport.Event{Payload: text}, "received"
		if c.rand.IntN(200) < c.faults {
			d, event, what = d+c.pause(3*time.Second), transport.Event{Gap: true}, "gap"
		}
		if !s.pending {
			s.pending = true
			c.after(d, func() { s.deliver(event, what) })
		}
	}
}

// deliver waits until the client receives the event.
func (s *subscription) deliver(e transport.Event, what string) {
	for !s.delivered(e, what) {
		time.Sleep(time.Millisecond)
	}
}

func (s *subscription) delivered(e transport.Event, what string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, open := s.subs[s]; !open {
		return true
	}
	select {
	case s.events <- e:
		s.add(step{what: what, who: s.id})
		s.pending = false
		return true
	default:
		return false
	}
}

func (s *subscription) Events() <-chan transport.Event { return s.events }
func (*subscription) Err() error                       { return nil }

func (s *subscription) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subs, s)
}

// Fence implements transport.Fencer.
func (c *client) Fence(_ context.Context, call *transport.Call) error {
	time.Sleep(2 * c.latency)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.fences || c.rand.IntN(100) < c.faults {
		return transport.ErrUncertain
	}
	c.fenced[call.Conn()] = true
	return nil
}

// PublishCommand implements transport.Transport.
func (*client) PublishCommand() string { return "PUBLISH" }

// Close implements transport.Transport.
func (c *client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	return nil
}

// unannounced is the value of a release that has not sent a message.
const unannounced = 2

// marker is the message that follows the messages of each command.
const marker = "marker"

var channel = codec.LockChannel(key)
