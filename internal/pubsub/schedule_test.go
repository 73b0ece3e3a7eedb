package pubsub

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/schedule"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

// Subscriptions and sinks come and go while messages arrive and connections break. Close interrupts some
// schedules. Connections yield before each write and before each reply is read.
func TestEachMessageIsEventOrGapInEverySchedule(t *testing.T) {
	schedule.Run(t, testlevel.Rounds(300, 5000), func(t *testing.T, s *schedule.Schedule) {
		t.Helper()
		main := s.Actor("main")
		r := &radio{t: t, s: s, faulty: main.Pick(3) > 0, abrupt: main.Pick(2) == 0, last: map[string]int{}}
		r.sub = New(Config{Dial: r.dial, OnLost: func(error) { r.lost++ }})
		defer mustClose(t, r.sub) // even after a failure: goroutines must not outlive the bubble
		sinks := make([]*orderedSink, 9)
		for i := range 3 {
			s.Go(fmt.Sprint("listener ", i), func(a *schedule.Actor) {
				for n := range 3 {
					sinks[3*i+n] = r.listen(a)
				}
			})
			s.Go(fmt.Sprint("subscriber ", i), func(a *schedule.Actor) {
				for range 3 {
					r.subscribe(a)
				}
			})
		}
		s.Go("publisher", r.publishSome)
		s.Go("breaker", r.breakSome)
		if r.abrupt {
			for i := range 2 {
				s.Go(fmt.Sprint("closer ", i), func(a *schedule.Actor) {
					a.Sleep(time.Duration(a.Pick(100)) * time.Millisecond)
					mustClose(t, r.sub)
				})
			}
		}
		s.Wait()
		r.check(sinks)
	})
}

// radio is a server and a Subscriber connected to it.
type radio struct {
	t              *testing.T
	s              *schedule.Schedule
	sub            *Subscriber
	faulty, abrupt bool
	dials          int
	lost           int // connections and dials

	mu   sync.Mutex // guards the fields below; actors don't yield while they hold it
	wire *wire      // the newest connection
	last map[string]int
	down bool // dials fail
}

func (r *radio) dial(context.Context) (redis.Conn, error) {
	r.dials++
	w := &wire{radio: r, reads: r.s.Actor(fmt.Sprint("reader ", r.dials)), writes: r.s.Actor(fmt.Sprint("writer ", r.dials)),
		out: make(chan any, 1000), closed: make(chan struct{})}
	w.writes.Yield()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		return nil, errNobody
	}
	r.wire = w
	return w, nil
}

// publish publishes a message and returns its number. Each channel counts its own messages.
func (r *radio) publish(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last[name]++
	if n := r.last[name]; r.wire != nil && slices.Contains(r.wire.subscribed, name) {
		r.wire.out <- []any{[]byte("message"), []byte(name), []byte(strconv.Itoa(n))}
	}
	return r.last[name]
}

func (r *radio) publishSome(a *schedule.Actor) {
	for range 20 {
		r.publish(channelOf(a))
		r.pause(a)
	}
}

// soon is longer than the delivery of a message takes, and shorter than any timer in a Subscriber.
const soon = 5 * time.Second

// channelOf picks a channel, a or b.
func channelOf(a *schedule.Actor) string { return string(rune('a' + a.Pick(2))) }

func (r *radio) pause(a *schedule.Actor) {
	if a.Yield(); a.Pick(3) == 0 {
		a.Sleep(time.Duration(a.Pick(20)) * time.Millisecond)
	}
}

func (r *radio) breakSome(a *schedule.Actor) {
	for range 9 {
		a.Sleep(time.Duration(a.Pick(20)) * time.Millisecond)
		r.sub.Stats()
		if !r.faulty {
			continue
		}
		how := a.Pick(6)
		if how < 2 {
			r.sub.Reconnect()
			continue
		}
		name := channelOf(a)
		r.mu.Lock()
		switch w := r.wire; {
		case w == nil:
		case how == 2:
			w.hangUp()
		case how == 3:
			r.down = !r.down
		case slices.Contains(w.subscribed, name):
			w.run("UNSUBSCRIBE", name) // its own
		}
		r.mu.Unlock()
	}
	r.mu.Lock()
	r.down = false
	r.mu.Unlock()
}

// wire is a connection. Its actors are the goroutines that write to it and read from it.
type wire struct {
	redis.ConnWithTimeout // nil, since no other methods are called
	*radio
	reads, writes *schedule.Actor
	sent          [][]string
	out           chan any
	once          sync.Once
	closed        chan struct{}
	subscribed    []string // guarded by radio.mu
}

func (w *wire) Send(command string, args ...any) error {
	words := []string{command}
	for _, arg := range args {
		words = append(words, arg.(string))
	}
	w.sent = append(w.sent, words)
	return nil
}

func (w *wire) Flush() error {
	w.writes.Yield()
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case <-w.closed:
		return io.EOF
	default:
	}
	for _, words := range w.sent {
		w.run(words[0], words[1:]...)
	}
	w.sent = nil
	return nil
}

// run runs a command. w.mu is held.
func (w *wire) run(command string, names ...string) {
	if command == "PING" {
		w.out <- "PONG"
	}
	for _, name := range names {
		word := "unsubscribe"
		if w.subscribed = slices.DeleteFunc(w.subscribed, func(n string) bool { return n == name }); command == "SUBSCRIBE" {
			word, w.subscribed = "subscribe", append(w.subscribed, name)
		}
		w.out <- []any{[]byte(word), []byte(name), int64(len(w.subscribed))}
	}
}

func (w *wire) ReceiveWithTimeout(time.Duration) (any, error) {
	select {
	case r := <-w.out:
		if w.reads.Yield(); w.reads.Pick(12) == 0 {
			w.reads.Sleep(40 * time.Millisecond) // longer than it takes to reconnect
		}
		return r, nil
	case <-w.closed:
		return nil, io.EOF
	}
}

func (w *wire) hangUp() { w.once.Do(func() { close(w.closed) }) }

func (w *wire) Close() error {
	w.hangUp()
	return nil
}

// subscribe subscribes and requires an event or a gap for each message that it publishes itself.
func (r *radio) subscribe(a *schedule.Actor) {
	r.pause(a)
	ctx, cancel := context.WithCancel(r.t.Context())
	defer cancel()
	name := channelOf(a)
	if a.Pick(4) == 0 {
		r.s.Go(fmt.Sprint("canceler ", a.Pick(1e9)), func(a *schedule.Actor) {
			r.pause(a)
			cancel()
		})
	}
	began := time.Now()
	l, err := r.sub.Subscribe(ctx, name)
	assert.True(r.t, r.faulty || time.Since(began) < soon)
	if err != nil {
		assert.True(r.t, ctx.Err() != nil || r.faulty && errors.Is(err, transport.ErrNotSent) || r.abrupt && errors.Is(err, transport.ErrClosed), "%v", err)
		return
	}
	defer l.Close()
	for range 1 + a.Pick(3) {
		r.pause(a)
		for ended := false; !ended && len(l.Events()) > 0; {
			_, open := <-l.Events()
			ended = !open
		}
		n, published := r.publish(name), time.Now()
		for e := (transport.Event{}); !e.Gap && e.Payload != strconv.Itoa(n) && e.Coalesced == 0; {
			var open bool
			select {
			case e, open = <-l.Events():
				assert.True(r.t, r.faulty || !e.Gap)
			case <-time.After(waitLimit):
				assert.Fail(r.t, "neither an event nor a gap")
				return
			}
			if !open {
				assert.True(r.t, r.abrupt && errors.Is(l.Err(), transport.ErrClosed), "%v", l.Err())
				return
			}
		}
		assert.NoError(r.t, l.Err())
		assert.True(r.t, r.faulty || time.Since(published) < soon)
	}
}

// orderedSink requires that messages are consecutive, except after an acknowledgement.
type orderedSink struct {
	*radio
	acked   bool
	stopped bool
	newest  int // message; 0 after an acknowledgement
	failed  error
}

func (o *orderedSink) Acked(again bool) {
	assert.Equal(o.t, o.acked, again)
	assert.True(o.t, o.faulty || !again)
	assert.False(o.t, o.stopped || o.failed != nil)
	o.acked, o.newest = true, 0
}

func (o *orderedSink) Message(payload string) {
	n, err := strconv.Atoi(payload)
	assert.NoError(o.t, err)
	assert.False(o.t, o.stopped || o.failed != nil)
	assert.True(o.t, !o.acked || o.newest == 0 || n == o.newest+1, "%d after %d", n, o.newest)
	o.newest = n
}

func (o *orderedSink) Failed(err error) {
	assert.False(o.t, o.stopped || o.failed != nil)
	o.failed = err
}

func (r *radio) listen(a *schedule.Actor) *orderedSink {
	sink := &orderedSink{radio: r}
	r.pause(a)
	stop := r.sub.Listen(channelOf(a), sink)
	r.pause(a)
	r.pause(a)
	if a.Pick(3) > 0 {
		stop()
		sink.stopped = true
	}
	return sink
}

// check requires that every sink got an acknowledgement and the latest message, or an error.
func (r *radio) check(sinks []*orderedSink) {
	time.Sleep(5 * time.Second)
	if !r.abrupt {
		r.sub.mu.Lock()
		for name, c := range r.sub.table.channels {
			assert.True(r.t, c.wanted() && c.acked, "channel %s", name)
		}
		if r.sub.session != nil {
			assert.Len(r.t, r.wire.subscribed, len(r.sub.table.channels))
		}
		r.sub.mu.Unlock()
		a, b := r.publish("a"), r.publish("b")
		time.Sleep(time.Second)
		r.sub.mu.Lock() // for the sinks
		for _, sink := range sinks {
			if !sink.stopped && sink.failed == nil {
				assert.True(r.t, sink.acked)
				assert.Contains(r.t, []int{a, b}, sink.newest)
			}
		}
		r.sub.mu.Unlock()
		mustClose(r.t, r.sub)
	}
	for _, sink := range sinks {
		if !sink.stopped {
			require.True(r.t, errors.Is(sink.failed, transport.ErrClosed) || r.faulty && errors.Is(sink.failed, transport.ErrNotSent), "%v", sink.failed)
		}
	}
	if !r.faulty {
		require.Zero(r.t, r.lost)
	}
}
