// Package model checks that the steps of clients under faults are steps of docs/model/plain.pml.
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
	"github.com/redlatch/redlatch/internal/test/faketransport"
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
	"run acquire true, 0 messages": {2, 1}, "refuse acquire": {2, 0},
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

	mu     sync.Mutex // guards the fields below and those of clients; held while the server runs a command
	server redis.Conn
	ends   time.Time // when the lock's lease ends
	rand   *rand.Rand
	steps  []*step
}

// trace runs clients on an empty server, and returns their visible steps.
func trace(t *testing.T, seed uint64, dial func(testing.TB) redis.Conn) []*step {
	t.Helper()
	w := &world{rand: rand.New(rand.NewPCG(seed, 0))}
	synctest.Test(t, func(t *testing.T) {
		w.server, w.began = dial(t), time.Now()
		var callers sync.WaitGroup
		w.mu.Lock()
		for i := range 2 + draw(w.rand, 2) {
			c := &client{world: w, id: i, latency: time.Millisecond + draw(w.rand, 50*time.Millisecond), faults: draw(w.rand, 60) - 15}
			c.Network = &faketransport.Network{Locker: &w.mu, Next: c.next, Publishes: "SET"} // for run
			w.clients = append(w.clients, c)
			tr := []transport.Transport{c, faketransport.FencingNetwork{Network: c.Network}}[draw(w.rand, 2)]
			r, err := redlatch.NewWithTransport(tr, redlatch.WithCommandTimeout(time.Second), redlatch.WithWatchdogTimeout(lease),
				redlatch.WithPollCap(2*time.Second))
			require.NoError(t, err)
			defer func() { require.NoError(t, r.Close()) }()
			callers.Go(func() { c.live(rlock.New(r, key), rand.New(rand.NewPCG(seed, uint64(1+i)))) })
		}
		if draw(w.rand, 5) == 0 { // a third party
			time.AfterFunc(draw(w.rand, 10*time.Second), func() { w.clients[0].run("delete", 0, "DEL", key) })
		}
		w.mu.Unlock()
		callers.Wait()
		w.healed.Store(true)
		time.Sleep(3 * lease) // until calls in doubt are resolved
	})
	return slices.DeleteFunc(w.steps, func(s *step) bool { return visible[s.what][0] == 0 })
}

func draw[N int | time.Duration](r *rand.Rand, n N) N { return N(r.Int64N(int64(n))) }

// client is a client with one caller, and its network.
type client struct {
	*faketransport.Network
	*world
	id      int
	latency time.Duration
	faults  int          // per hundred calls and messages
	owners  atomic.Int64 // the number of owners that the caller has used

	// Guarded by mu.
	owner   int    // the number of the caller's owner, or 0 between calls
	message string // the step of the client when it receives the message that has been sent
}

// live acquires the lock once or twice.
func (c *client) live(l *rlock.Lock, r *rand.Rand) {
	for n := 1 + draw(r, 2); n > 0 && c.owners.Load() < mostOwners; n-- {
		time.Sleep(draw(r, 2*time.Second))
		options := [][]rlock.Option{nil, nil, {rlock.WithLease(lease)}}[draw(r, 3)]
		patience := [...]time.Duration{draw(r, 4*time.Second), time.Hour}[draw(r, 2)]
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		h, err := l.Lock(ctx, options...)
		if cancel(); err != nil {
			c.add("gave up", 0)
			continue
		}
		owner := int(h.Owner().N())
		stop := context.AfterFunc(h.Context(context.Background()), func() { c.add("hold lost", owner) })
		time.Sleep(draw(r, 5*time.Second))
		if stop() {
			c.add("unlock", owner)
		}
		_ = h.Unlock()
	}
}

func (c *client) add(what string, owner int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.record(what, owner)
}

// record records a step. It returns nil for steps that the model lacks: giving up before an attempt was sent, and the
// confirmation of a renewal when the hold is over. It must be called with mu held.
func (c *client) record(what string, owner int) *step {
	for _, o := range c.clients {
		if o.Received() {
			c.steps = append(c.steps, &step{o.message, o.id, 0, time.Since(c.began)})
			o.message = ""
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

func (c *client) fails() bool { return draw(c.rand, 100) < c.faults && !c.healed.Load() }

// next draws the way of a call, of a subscription or of a message, which may become a late gap. It records the steps.
func (c *client) next(call *transport.Call) faketransport.Way {
	w := faketransport.Way{Arrive: c.latency, Reply: c.latency}
	if call == nil {
		message := "received"
		if c.fails() {
			w.Fault, w.Arrive, message = faketransport.Unsent, w.Arrive+draw(c.rand, lease), "gap"
		}
		w.Observe = func(event string) {
			if c.message = message; event == "subscribed" {
				c.message = ""
				c.record("listening", 0)
			}
		}
		return w
	}
	what := call.Name()
	text, _ := call.Args[call.NumKeys].(string)
	parsed, _ := codec.ParseOwner(text)
	owner := int(parsed.N())
	if (what != "acquire" || owner < mostOwners) && c.fails() {
		w.Fault = faketransport.Fault(1 + draw(c.rand, int(faketransport.CallLost)))
		w.Arrive, w.Reply, w.Break = w.Arrive+draw(c.rand, late), w.Reply+draw(c.rand, late), 1+draw(c.rand, late)
	}
	var sent, ran *step
	var ok bool
	args := append([]any{call.Script.Text(), call.NumKeys}, call.Args...)
	w.Run = func() (reply any) {
		reply, ok, ran = c.run(what, owner, "EVAL", args...)
		return reply
	}
	w.Observe = func(event string) {
		switch {
		case event == "not sent":
			c.record("not sent "+what, 0)
		case event == "sent":
			sent = c.record("send "+what+", no reply", owner)
		case c.record(fmt.Sprint("reply ", what, " ", ok), owner) != nil:
			if sent.what = "send " + what; !ok {
				ran.what = "refuse " + what
			}
		}
	}
	return w
}

// run runs a command, and sends the message that a script has stored with SET. The lease follows the clock of the
// bubble, not the server's; before the first command, it has ended.
func (c *client) run(what string, owner int, command string, args ...any) (reply any, ok bool, ran *step) {
	c.mu.Lock()
	defer c.mu.Unlock()
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
	succeeded := map[string]string{"acquire": "<nil>", "renew": "[1]", "release": "1", "delete": "1"}
	ok = fmt.Sprint(replies[1]) == succeeded[what]
	for _, o := range c.clients[:int(n)*len(c.clients)] {
		if o.message == "" { // it has received the last one
			o.Publish(codec.LockChannel(key))
		}
	}
	return replies[1], ok, c.record(fmt.Sprintf("run %s %t, %d messages", what, ok, n), owner)
}

// sh runs a command in a folder.
func sh(t *testing.T, dir, command string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", "cd "+dir+" && "+command).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.NotRegexp(t, "max search depth too small|Search not completed", string(out))
}

// compile returns the folder of pan, which checks traces.
func compile(t *testing.T) string {
	t.Helper()
	testlevel.All(t, "it needs Spin")
	testlevel.NoRace(t, "the traces take several times as long")
	t.Parallel()
	dir := t.TempDir()
	sh(t, dir, `spin -DTRACE -DCALLERS=3 -DOWN=3 -DLEASE=3 -a "$OLDPWD/../../docs/model/plain.pml" &&
		gcc -O2 -w -DNOREDUCE -DSAFETY -DMEMLIM=2000 -o pan pan.c`)
	return dir
}

var (
	seeds = flag.Uint64("seed", 1, "the first seed")
	count = flag.Uint64("traces", 10_000, "how many traces to check")
)

// requireBehaviors checks the traces for n seeds.
func requireBehaviors(t *testing.T, pan string, first, n uint64, dial func(testing.TB) redis.Conn) {
	t.Helper()
	var traces [][]*step
	var text []byte
	for seed := first; seed < first+n; seed++ {
		steps := trace(t, seed, dial)
		traces = append(traces, steps)
		for _, s := range steps {
			text = append(text, visible[s.what][0], byte(s.client), byte(s.owner), visible[s.what][1])
		}
		text = append(text, 0, 0, 0, 0)
	}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "traces"), text, 0o600))
	sh(t, dir, pan+"/pan -m200000 -A -w20 -n")
	text, err := os.ReadFile(filepath.Join(dir, "verdicts"))
	require.NoError(t, err)
	verdicts := strings.Fields(string(text))
	require.Len(t, verdicts, len(traces))
	for i, verdict := range slices.Backward(verdicts) { // the search begins with the last trace and ends with a rejected one
		rejected, err := strconv.Atoi(verdict)
		if require.NoError(t, err); rejected < 0 {
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
			requireBehaviors(t, pan, *seeds+i, min(batch, *count-i), func(tb testing.TB) redis.Conn {
				tb.Helper()
				return redistest.Mini(tb, embedded.WithInProcess()).Dial(tb)
			})
		})
	}
}

func TestTracesOnRedisAreBehaviorsOfModel(t *testing.T) {
	requireBehaviors(t, compile(t), *seeds, 250, redistest.Start(t).Dial)
}
