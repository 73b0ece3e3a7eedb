// Package model checks that the steps of clients under faults are steps of docs/model/plain.pml. Run it from the root:
//
//	REDLATCH_TEST=all go test ./test/model -traces 10000 -seed 1
package model

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

const (
	key   = "lock"
	lease = 3 * time.Second
	late  = lease / 2 // the longest delay of a call or a reply

	mostOwners = 3 // of a client in the model
)

// step is a step that others can see.
type step struct {
	what          string
	client, owner int // owner is the number of the client's owner
	at            time.Duration
}

// visible contains the model's visible steps, each with its number and value in trace.pml. A release without a message is
// not a step of the model.
var visible = map[string][2]byte{
	"send acquire": {1, 0}, "send acquire, no reply": {1, 1}, "not sent acquire": {16, 0},
	"run acquire true, 0 messages": {2, 1}, "run acquire false, 0 messages": {2, 0},
	"reply acquire true": {3, 1}, "reply acquire false": {4, 0}, "gave up": {5, 0},
	"listening": {8, 0}, "received": {6, 0}, "gap": {7, 0},
	"send renew": {9, 0}, "send renew, no reply": {9, 1}, "run renew true, 0 messages": {10, 1}, "reply renew true": {15, 0},
	"unlock": {11, 0}, "run release true, 1 messages": {12, 1}, "run release true, 0 messages": {12, 0},
	"hold lost": {13, 0}, "run delete true, 0 messages": {14, 1},
}

// world is a server, its clients and the network between them. It records their steps.
type world struct {
	began   time.Time
	clients []*client
	healed  atomic.Bool // no more faults
	calls   atomic.Int64
	killed  sync.Map // calls whose connection was killed

	turn   sync.Mutex // guards the fields below; held while the server runs a command, which takes no fake time
	server redis.Conn
	ends   time.Time // when the lock's lease ends

	mu    sync.Mutex // guards the fields below, and those of clients
	rand  *rand.Rand
	steps []*step
}

// trace runs clients on an empty server, and returns their visible steps.
func trace(t *testing.T, seed uint64, dial func(*testing.T) redis.Conn) []*step {
	t.Helper()
	w := &world{rand: rand.New(rand.NewPCG(seed, 0))}
	synctest.Test(t, func(t *testing.T) {
		t.Helper()
		w.server, w.began = dial(t), time.Now()
		var callers sync.WaitGroup
		for i := range 2 + draw(w, 2) {
			c := &client{world: w, id: i, latency: time.Millisecond + draw(w, 50*time.Millisecond), faults: draw(w, 60) - 15, fences: draw(w, 2) == 0}
			w.clients = append(w.clients, c)
			r, err := redlatch.NewWithTransport(c, redlatch.WithCommandTimeout(time.Second), redlatch.WithWatchdogTimeout(lease),
				redlatch.WithPollCap(2*time.Second))
			require.NoError(t, err)
			defer func() { require.NoError(t, r.Close()) }()
			callers.Go(func() { c.live(rlock.New(r, key)) })
		}
		if draw(w, 5) == 0 { // a third party
			time.AfterFunc(draw(w, 10*time.Second), func() { w.clients[0].run("delete", 0, "DEL", key) })
		}
		callers.Wait()
		w.healed.Store(true)
		time.Sleep(3 * lease) // until calls in doubt are resolved
	})
	return slices.DeleteFunc(w.steps, func(s *step) bool { return visible[s.what][0] == 0 })
}

func draw[N int | time.Duration](w *world, n N) N {
	w.mu.Lock()
	defer w.mu.Unlock()
	return N(w.rand.Int64N(int64(n)))
}

// client is a client with one caller, and its transport.
type client struct {
	*world
	id      int
	latency time.Duration
	faults  int // per hundred calls and messages
	fences  bool
	owners  atomic.Int64 // the number of owners that the caller has used

	// Guarded by mu.
	owner int // the number of the caller's owner, or 0 between calls
	sub   *subscription
}

func (c *client) fails() bool { return draw(c.world, 100) < c.faults && !c.healed.Load() }

// live acquires the lock once or twice.
func (c *client) live(l *rlock.Lock) {
	for n := 1 + draw(c.world, 2); n > 0 && c.owners.Load() < mostOwners; n-- {
		time.Sleep(draw(c.world, 2*time.Second))
		options := [][]rlock.Option{nil, nil, {rlock.WithLease(lease)}}[draw(c.world, 3)]
		patience := [...]time.Duration{draw(c.world, 4*time.Second), time.Hour}[draw(c.world, 2)]
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		h, err := l.Lock(ctx, options...)
		if cancel(); err != nil {
			c.add("gave up", 0)
			continue
		}
		owner := int(h.Owner().N())
		stop := context.AfterFunc(h.Context(context.Background()), func() { c.add("hold lost", owner) })
		time.Sleep(draw(c.world, 5*time.Second))
		if stop() {
			c.add("unlock", owner)
		}
		_ = h.Unlock()
	}
}

// add records a step. It returns nil for steps that the model lacks: giving up before an attempt was sent, and the
// confirmation of a renewal when the hold is over.
func (c *client) add(what string, owner int) *step {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range c.clients {
		if s := o.sub; s != nil && s.arrived && len(s.events) == 0 { // the client has just received it
			c.steps = append(c.steps, &step{s.message, o.id, 0, time.Since(c.began)})
			s.message, s.arrived = "", false
		}
	}
	used := c.owner
	switch what {
	case "send acquire, no reply":
		c.owner = owner
		c.owners.Store(int64(owner))
	case "gave up", "hold lost", "unlock":
		c.owner = 0
	}
	if used == 0 && what == "gave up" || used != owner && strings.HasPrefix(what, "reply renew") {
		return nil
	}
	s := &step{what, c.id, owner, time.Since(c.began)}
	c.steps = append(c.steps, s)
	return s
}

// Kinds of faults.
const (
	notSent   = 1 + iota // the call is not sent
	slow                 // it and its reply take long
	lost                 // its connection breaks, and it does not run
	replyLost            // its connection breaks, and it runs before or after that
)

func (c *client) Start(call *transport.Call, done transport.Done) {
	id, what, fault, delay := c.calls.Add(1), call.Name(), 0, time.Duration(1)
	text, _ := call.Args[call.NumKeys].(string)
	_, number, _ := strings.Cut(text, ":")
	owner, _ := strconv.Atoi(number)
	if (what != "acquire" || owner < mostOwners) && c.fails() {
		fault, delay = 1+draw(c.world, 4), late
	}
	if fault == notSent || !call.Claim(id) {
		c.add("not sent "+what, 0)
		time.AfterFunc(0, func() { done(nil, transport.ErrNotSent) })
		return
	}
	args := append([]any{call.Script.Text(), call.NumKeys}, call.Args...)
	sent := c.add("send "+what+", no reply", owner)
	broken, reply := fault == lost || fault == replyLost, done
	if broken {
		time.AfterFunc(draw(c.world, late), func() { done(nil, transport.ErrUncertain) })
		reply = func(any, error) {}
	}
	time.AfterFunc(c.latency+draw(c.world, delay), func() {
		if _, killed := c.killed.Load(id); killed || fault == lost {
			reply(nil, transport.ErrUncertain)
			return
		}
		value, ok, ran := c.run(what, owner, "EVAL", args...)
		time.Sleep(c.latency + draw(c.world, delay))
		switch heard := !broken && !call.Abandoned(); {
		case heard && c.add(fmt.Sprint("reply ", what, " ", ok), owner) != nil:
			sent.what = "send " + what // it has got its reply
		case !ok:
			ran.what = "" // nothing has changed
		}
		reply(value, nil)
	})
}

// succeeded contains the replies to calls that change the lock.
var succeeded = map[string]string{"acquire": "<nil>", "renew": "[1]", "release": "1", "delete": "1"}

// run runs a command, and sends the message that a script has stored with SET. The lease follows the clock of the
// bubble, not the server's.
func (c *client) run(what string, owner int, command string, args ...any) (reply any, ok bool, ran *step) {
	c.turn.Lock()
	defer c.turn.Unlock()
	_ = c.server.Send("PEXPIRE", key, time.Until(c.ends).Round(time.Millisecond).Milliseconds())
	_ = c.server.Send(command, args...)
	_ = c.server.Send("PTTL", key)
	_ = c.server.Send("DEL", codec.LockChannel(key))
	replies, err := redis.Values(c.server.Do(""))
	if err != nil {
		panic(err)
	}
	left, _ := replies[2].(int64)
	c.ends = time.Now().Add(time.Duration(left) * time.Millisecond)
	n, _ := replies[3].(int64)
	for _, o := range c.clients[:int(n)*len(c.clients)] {
		o.publish()
	}
	ok = fmt.Sprint(replies[1]) == succeeded[what]
	return replies[1], ok, c.add(fmt.Sprintf("run %s %t, %d messages", what, ok, n), owner)
}

type subscription struct {
	*client
	events chan transport.Event

	// Guarded by mu.
	message string // the step of the client when it receives the message that has been sent
	arrived bool
}

// publish sends a message or, after some time, a gap, unless the client has not received the last one.
func (c *client) publish() {
	d, e, what := c.latency, transport.Event{Payload: "0"}, "received"
	if c.fails() {
		d, e, what = d+draw(c.world, lease), transport.Event{Gap: true}, "gap"
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.sub; s != nil && s.message == "" {
		s.message = what
		time.AfterFunc(d, func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			s.events <- e
			s.arrived = true
		})
	}
}

func (c *client) Subscribe(context.Context, string) (transport.Subscription, error) {
	time.Sleep(2 * c.latency)
	if c.fails() {
		return nil, transport.ErrNotSent
	}
	c.add("listening", 0)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sub = &subscription{client: c, events: make(chan transport.Event, 1)}
	return c.sub, nil
}

func (s *subscription) Events() <-chan transport.Event { return s.events }
func (*subscription) Err() error                       { return nil }

func (s *subscription) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sub == s {
		s.sub = nil
	}
}

func (c *client) Fence(_ context.Context, call *transport.Call) error {
	time.Sleep(2 * c.latency)
	if !c.fences || c.fails() {
		return transport.ErrUncertain
	}
	c.killed.Store(call.Conn(), true)
	return nil
}

func (*client) PublishCommand() string { return "SET" } // for run
func (*client) Close() error           { return nil }

// sh runs a command in a folder.
func sh(t *testing.T, dir, command string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotContains(t, string(out), "max search depth too small")
}

// compile returns the program that checks traces.
func compile(t *testing.T) string {
	t.Helper()
	testlevel.All(t, "it needs Spin")
	testlevel.NoRace(t, "the traces take several times as long")
	t.Parallel()
	dir := t.TempDir()
	model, err := filepath.Abs("../../docs/model/plain.pml")
	require.NoError(t, err)
	sh(t, dir, "spin -DTRACE -DCALLERS=3 -DOWN=3 -DLEASE=3 -a "+model+" && gcc -O2 -w -DNOREDUCE -DSAFETY -DMEMLIM=2000 -o pan pan.c")
	return filepath.Join(dir, "pan")
}

var (
	seeds = flag.Uint64("seed", 1, "the first seed")
	count = flag.Uint64("traces", 10_000, "how many traces to check")
)

// requireBehaviors checks the traces for n seeds.
func requireBehaviors(t *testing.T, pan string, first, n uint64, dial func(*testing.T) redis.Conn) {
	t.Helper()
	var traces [][]*step
	var text []byte
	for seed := first; seed < first+n; seed++ {
		steps := trace(t, seed, dial)
		traces = append(traces, steps)
		for _, s := range steps {
			v := visible[s.what]
			text = append(text, v[0], byte(s.client), byte(s.owner), v[1])
		}
		text = append(text, 0, 0, 0, 0)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "traces"), text, 0o600))
	sh(t, dir, pan+" -m200000 -A -w20 -n")
	text, err := os.ReadFile(filepath.Join(dir, "verdicts"))
	require.NoError(t, err)
	verdicts := strings.Fields(string(text))
	require.Len(t, verdicts, len(traces))
	for i, verdict := range slices.Backward(verdicts) { // the search ends with the first of them that is rejected
		rejected, err := strconv.Atoi(verdict)
		require.NoError(t, err)
		if rejected < 0 {
			require.Equal(t, -1, rejected, "undecided")
			continue
		}
		var story strings.Builder
		for _, s := range traces[i][:rejected+1] {
			fmt.Fprintf(&story, "%8.3f client %d owner %d %s\n", s.at.Seconds(), s.client, s.owner, s.what)
		}
		t.Fatalf("seed %d: the model rejects the last of these steps:\n%s", first+uint64(i), &story)
	}
}

func TestTracesAreBehaviorsOfModel(t *testing.T) {
	pan := compile(t)
	const batch = 250
	for i := uint64(0); i < *count; i += batch {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			requireBehaviors(t, pan, *seeds+i, min(batch, *count-i), func(t *testing.T) redis.Conn {
				t.Helper()
				return redistest.Mini(t, embedded.WithInProcess()).Dial(t)
			})
		})
	}
}

func TestTracesOnRedisAreBehaviorsOfModel(t *testing.T) {
	pan, server := compile(t), redistest.Start(t)
	requireBehaviors(t, pan, *seeds, 250, func(t *testing.T) redis.Conn {
		t.Helper()
		server.Do(t, "FLUSHALL")
		return server.Dial(t)
	})
}
