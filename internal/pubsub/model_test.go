package pubsub

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

type reply struct {
	value   any
	refusal *transport.ServerError
}

// world is a Subscriber without goroutines, a server and a network, driven step by step.
type world struct {
	t    *rapid.T
	s    *Subscriber
	x    *session
	mine []*probe

	in         []*op           // commands in flight to the server
	out        []reply         // sent by the server and not read yet
	subscribed map[string]bool // channels subscribed on the server
	unserved   bool            // the server temporarily refuses the channel "c"
}

// probe is a listener. It must be woken if something was published since it was established and last read.
type probe struct {
	*listener
	name string
	owed bool
}

func newWorld(t *rapid.T) *world {
	w := &world{t: t, subscribed: map[string]bool{}}
	w.s = New(Config{Dial: func(context.Context) (redis.Conn, error) { panic("no dialling here") }})
	w.s.running = true
	w.connect()
	return w
}

func (w *world) connect() {
	w.in, w.out = nil, nil
	clear(w.subscribed)
	w.x = &session{sub: w.s, born: time.Now()}
	require.True(w.t, w.s.attach(w.x))
}

// breakDown loses the connection and everything in transit.
func (w *world) breakDown() {
	w.s.detach()
	w.connect()
}

func forbidden(name string) bool { return name == "forbidden" }

func (w *world) join(name string) {
	p := &probe{listener: &listener{sub: w.s, events: make(chan transport.Event, 1)}, name: name}
	require.NoError(w.t, w.s.join(name, p.listener))
	w.mine = append(w.mine, p)
}

func (w *world) leave(i int) {
	w.mine[i].Close()
	w.mine = append(w.mine[:i], w.mine[i+1:]...)
}

func (w *world) write() {
	ops, _ := w.x.next()
	w.in = append(w.in, ops...)
}

// serverStep runs the oldest command on the server.
func (w *world) serverStep() {
	o := w.in[0]
	w.in = w.in[1:]
	if o.kind == ping {
		w.out = append(w.out, reply{value: "PONG"})
		return
	}
	for _, name := range o.args {
		if o.kind == subscribe && forbidden(name.(string)) {
			w.out = append(w.out, reply{refusal: &transport.ServerError{Text: "NOPERM no such right"}})
			return
		}
		if o.kind == subscribe && w.unserved && name == "c" {
			w.out = append(w.out, reply{refusal: &transport.ServerError{Text: "TRYAGAIN later"}})
			return
		}
	}
	for _, name := range o.args {
		w.subscribed[name.(string)] = o.kind == subscribe
		w.push(map[kind]string{subscribe: "subscribe", unsubscribe: "unsubscribe"}[o.kind], name.(string), int64(1))
	}
}

func (w *world) push(word, name string, last any) {
	w.out = append(w.out, reply{value: []any{[]byte(word), []byte(name), last}})
}

// drop unsubscribes a channel on the server.
func (w *world) drop(name string) {
	if w.subscribed[name] {
		w.subscribed[name] = false
		w.push("sunsubscribe", name, int64(0))
	}
}

func (w *world) publish(name string) {
	for _, p := range w.mine {
		p.owed = p.owed || (p.name == name && p.established)
	}
	if w.subscribed[name] {
		w.push("message", name, []byte("0"))
	}
}

func (w *world) readStep() {
	r := w.out[0]
	w.out = w.out[1:]
	switch err := w.x.take(r.value, r.refusal); {
	case transport.IsCode(err, "TRYAGAIN"):
		w.s.failPending(err) // as run does
		w.breakDown()
	case err != nil:
		w.t.Fatalf("connection dropped: %v", err)
	}
}

func (w *world) consume(p *probe) {
	select {
	case _, open := <-p.events:
		if !open {
			require.True(w.t, forbidden(p.name) || p.refusedForNow(), "channel %s failed: %v", p.name, p.Err())
		}
		p.owed = false
	default:
	}
}

func (p *probe) refusedForNow() bool { return !p.established && transport.IsCode(p.Err(), "TRYAGAIN") }

// comeToRest serves all channels and delivers everything in transit.
func (w *world) comeToRest() {
	w.unserved = false
	for rounds := 0; ; rounds++ {
		if len(w.s.table.paused) > 0 {
			w.s.table.resumeAt = 1 // the pause is over
		}
		require.Less(w.t, rounds, 1000, "no end of commands")
		w.write()
		if len(w.in)+len(w.out) == 0 {
			return
		}
		for len(w.in) > 0 {
			w.serverStep()
		}
		for len(w.out) > 0 {
			w.readStep()
		}
	}
}

func (w *world) checkAtRest() {
	wanted := map[string]bool{}
	for _, p := range w.mine {
		if forbidden(p.name) {
			require.Error(w.t, p.Err())
			continue
		}
		if p.refusedForNow() {
			continue
		}
		wanted[p.name] = true
		require.True(w.t, p.established, "a listener of %s still waits", p.name)
		require.False(w.t, p.owed && len(p.events) == 0, "a listener of %s missed its wake-up", p.name)
	}
	for name, is := range w.subscribed {
		require.Equal(w.t, wanted[name], is, "the server's subscription to %s", name)
	}
	require.Len(w.t, w.s.table.channels, len(wanted))
	require.Empty(w.t, w.s.table.ops)
	require.Empty(w.t, w.s.table.paused)
}

func TestNoScheduleLosesWakeUpsOrLeaksState(t *testing.T) {
	t.Parallel()
	names := rapid.SampledFrom([]string{"a", "b", "c", "forbidden"})
	rapid.Check(testlevel.Drawn{T: t}, func(t *rapid.T) {
		w := newWorld(t)
		pick := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "which") }
		unless := func(empty bool, f func()) {
			if empty {
				t.Skip("nothing to do")
			}
			f()
		}
		t.Repeat(map[string]func(*rapid.T){
			"join":    func(t *rapid.T) { w.join(names.Draw(t, "name")) },
			"leave":   func(*rapid.T) { unless(len(w.mine) == 0, func() { w.leave(pick(len(w.mine))) }) },
			"write":   func(*rapid.T) { w.write() },
			"serve":   func(*rapid.T) { unless(len(w.in) == 0, w.serverStep) },
			"read":    func(*rapid.T) { unless(len(w.out) == 0, w.readStep) },
			"publish": func(t *rapid.T) { w.publish(names.Draw(t, "name")) },
			"drop":    func(t *rapid.T) { w.drop(names.Draw(t, "name")) },
			"refuse":  func(*rapid.T) { w.unserved = !w.unserved },
			"resume":  func(*rapid.T) { w.s.table.resumeAt = min(w.s.table.resumeAt, 1) },
			"break":   func(*rapid.T) { unless(len(w.in)+len(w.out) == 0, w.breakDown) },
			// Without it, few sequences reach an acknowledgement.
			"rest":    func(*rapid.T) { w.comeToRest() },
			"consume": func(*rapid.T) { unless(len(w.mine) == 0, func() { w.consume(w.mine[pick(len(w.mine))]) }) },
		})
		w.comeToRest()
		w.checkAtRest()
		for len(w.mine) > 0 {
			w.leave(0)
		}
		w.comeToRest()
		w.checkAtRest()
	})
}

func TestManyChannelsShareFewCommands(t *testing.T) {
	t.Parallel()
	rapid.Check(testlevel.Drawn{T: t}, func(t *rapid.T) {
		w := newWorld(t)
		n := rapid.IntRange(1, 3*batchSize).Draw(t, "channels")
		for i := range n {
			w.join(fmt.Sprint("channel-", i))
		}
		w.write()
		require.Len(t, w.in, 1+(n+batchSize-1)/batchSize, "a PING and the batches")
		w.comeToRest()
		w.checkAtRest()
	})
}
