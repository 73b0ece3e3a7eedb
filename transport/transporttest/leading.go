package transporttest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/builtin"
	"github.com/redlatch/redlatch/transport"
)

var leadCases = []testCase{
	{"Leads: the Start of a wrapper is not bypassed", leadsItselfOnly, ""},
	{"Lead: every call ends once, with its own reply", leadReplies, ""},
	{"Lead: the caller is notified of the start, once", leadStarted, ""},
	{"Lead: an ended context ends it, and the call continues", leadContext, "HoldReplies"},
	{"Lead: Interrupt ends it, and the call continues", leadInterrupted, "HoldReplies"},
	{"Lead: Close ends it", leadClosed, "HoldReplies"},
	{"Lead: every call ends once, with its own reply, while connections are cut", leadWhileCut, "CutConnections"},
}

type caller struct {
	started atomic.Int32
	left    atomic.Bool
}

func (c *caller) Started()    { c.started.Add(1) }
func (c *caller) Waits() bool { return !c.left.Load() }

// leader leads calls until callers read replies themselves.
func (f *fixture) leader() (transport.Transport, builtin.Leader) {
	f.t.Helper()
	tr := f.open()
	l := as[builtin.Leader](f, tr, "Leader of the built-in transports")
	require.True(f.t, l.Leads(tr), "it does not lead its own calls")
	f.recovers(tr)
	for i := range 40 {
		f.leadEcho(l, fmt.Sprint(i))
	}
	return tr, l
}

func (f *fixture) lead(ctx context.Context, l builtin.Leader, call *transport.Call, c *caller) *pending {
	p := f.watch(call)
	l.Lead(ctx, call, p.done, c)
	return p
}

func (f *fixture) leadEcho(l builtin.Leader, text string) {
	f.t.Helper()
	o := f.await(f.lead(f.t.Context(), l, command("ECHO", 0, text), &caller{}))
	require.NoError(f.t, o.err)
	require.Equal(f.t, text, plain(o.reply))
}

func (f *fixture) background(ctx context.Context, l builtin.Leader, call *transport.Call, c *caller) (p *pending, back <-chan struct{}) {
	p = f.watch(call)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		l.Lead(ctx, call, p.done, c)
	}()
	return p, returned
}

func (f *fixture) returns(back <-chan struct{}) {
	f.t.Helper()
	select {
	case <-back:
	case <-time.After(atOnce):
		f.t.Fatalf("Lead has not returned after %v", atOnce)
	}
}

func leadsItselfOnly(f *fixture) {
	tr, l := f.leader()
	wrapper := struct{ transport.Transport }{tr}
	assert.False(f.t, l.Leads(wrapper), "calls of a wrapper would not reach its Start")
	assert.False(f.t, l.Leads(&wrapper))
	assert.False(f.t, l.Leads(nil))
}

func leadReplies(f *fixture) {
	tr, l := f.leader()
	key := f.name()
	require.NoError(f.t, f.await(f.lead(f.t.Context(), l, command("SET", 1, key, "text"), &caller{})).err)
	o := f.await(f.lead(f.t.Context(), l, command("INCR", 1, key), &caller{}))
	assert.True(f.t, transport.IsCode(o.err, "ERR"), "%v", o.err)
	o = f.await(f.lead(f.t.Context(), l, eval(count, 1, f.name()), &caller{}))
	assert.NoError(f.t, o.err, "a script that the server may not know")
	withdrawn := command("SET", 1, key, "withdrawn")
	require.True(f.t, withdrawn.Abandon())
	f.isNotSent(f.await(f.lead(f.t.Context(), l, withdrawn, &caller{})))
	assert.Equal(f.t, "text", f.value(key))
	f.callers(tr, l, 8, 200)
}

func (f *fixture) callers(tr transport.Transport, l builtin.Leader, n, calls int) {
	f.t.Helper()
	var all sync.WaitGroup
	for g := range n {
		all.Go(func() {
			for i := range calls {
				call := command("ECHO", 0, fmt.Sprintf("%d:%d", g, i))
				var p *pending
				if i%10 == 9 {
					p = f.start(tr, call)
				} else {
					p = f.lead(f.t.Context(), l, call, &caller{})
				}
				select {
				case o := <-p.came:
					if o.err == nil {
						assert.Equal(f.t, call.Args[0], plain(o.reply))
					}
					f.inContract(o.err)
				case <-time.After(f.h.Patience):
					assert.Fail(f.t, "a call is stuck")
					return
				}
			}
		})
	}
	all.Wait()
}

func leadStarted(f *fixture) {
	_, used := f.leader()
	fresh := as[builtin.Leader](f, f.open(), "Leader") // its first call waits for a connection
	for range 20 {
		for _, l := range []builtin.Leader{used, fresh} {
			c := &caller{}
			f.await(f.lead(f.t.Context(), l, command("ECHO", 0, "x"), c))
			require.EqualValues(f.t, 1, c.started.Load())
		}
	}
}

func leadContext(f *fixture) {
	leadEnds(f, func(_ builtin.Leader, _ *pending, _ *caller, cancel func()) { cancel() })
}

func leadInterrupted(f *fixture) {
	leadEnds(f, func(l builtin.Leader, p *pending, c *caller, _ func()) {
		c.left.Store(true)
		l.Interrupt(p.call)
	})
}

func leadEnds(f *fixture, end func(l builtin.Leader, p *pending, c *caller, cancel func())) {
	tr, l := f.leader()
	release := f.holdReplies()
	ctx, cancel := context.WithCancel(f.t.Context())
	defer cancel()
	c := &caller{}
	p, back := f.background(ctx, l, command("ECHO", 0, "late"), c)
	f.eventually("the call was started", func() bool { return c.started.Load() > 0 })
	end(l, p, c, cancel)
	f.returns(back)
	assert.Zero(f.t, p.runs.Load(), "the reply is held")
	release()
	assert.Equal(f.t, "late", plain(f.await(p).reply))
	f.recovers(tr)
}

func leadClosed(f *fixture) {
	tr, l := f.leader()
	release := f.holdReplies()
	c := &caller{}
	p, back := f.background(f.t.Context(), l, command("ECHO", 0, "x"), c)
	f.eventually("the call was started", func() bool { return c.started.Load() > 0 })
	f.close(tr)
	f.returns(back)
	o := f.await(p)
	assert.ErrorIs(f.t, o.err, transport.ErrClosed)
	release()
	after := f.lead(f.t.Context(), l, command("ECHO", 0, "x"), &caller{})
	f.isNotSent(f.await(after))
}

func leadWhileCut(f *fixture) {
	tr, l := f.leader()
	for _, n := range []int{1, 2, 8} {
		over := make(chan struct{})
		go func() {
			defer close(over)
			f.callers(tr, l, n, 200)
		}()
		for cutting := true; cutting; {
			select {
			case <-over:
				cutting = false
			case <-time.After(10 * time.Millisecond):
				f.h.CutConnections(f.t)
			}
		}
	}
	f.recovers(tr)
}

var loadCases = []testCase{
	{"every call ends once, with its own reply", func(f *fixture) { underLoad(f, false) }, ""},
	{"every call ends once, with its own reply, while connections are cut", func(f *fixture) { underLoad(f, true) }, "CutConnections"},
}

const (
	loadCallers = 40
	loadEach    = 150
	cutEvery    = 15 * time.Millisecond
)

var add = transport.NewScript("add", "return redis.call('hincrby', KEYS[1], ARGV[1], ARGV[2])")

// The reply to a loadCall identifies it, and its field shows how often it ran.
type loadCall struct {
	id        int
	withdrawn bool
	outcome   outcome
	ended     bool
}

func (c *loadCall) number() int64 { return int64(1_000_000 + c.id) }

type load struct {
	f     *fixture
	tr    transport.Transport
	key   string
	calls []loadCall
	left  atomic.Int64 // number of running callers
}

func underLoad(f *fixture, cut bool) {
	l := &load{f: f, tr: f.opened(), key: f.name(), calls: make([]loadCall, loadCallers*loadEach)}
	for i := range l.calls {
		l.calls[i].id = i
	}
	var callers sync.WaitGroup
	l.left.Store(loadCallers)
	for c := range loadCallers {
		callers.Go(func() {
			defer l.left.Add(-1)
			l.caller(l.calls[c*loadEach : (c+1)*loadEach])
		})
	}
	cuts := 0
	for l.left.Load() > 0 {
		<-time.After(cutEvery)
		if cut {
			f.h.CutConnections(f.t)
			cuts++
		}
		if rand.IntN(3) == 0 { //nolint:gosec // not used for security
			f.h.Do(f.t, "SCRIPT", "FLUSH")
		}
	}
	callers.Wait()
	f.recovers(l.tr)
	tally := l.check()
	f.t.Logf("%d cuts: %v", cuts, tally)
	if cut {
		assert.NotZero(f.t, tally[uncertain], "the cuts hit nothing")
	} else {
		assert.Zero(f.t, tally[uncertain], "nothing was cut")
	}
}

func (l *load) caller(mine []loadCall) {
	for at := 0; at < len(mine); {
		burst := mine[at:min(at+1+rand.IntN(8), len(mine))] //nolint:gosec // not used for security
		var ends []*pending
		for i := range burst {
			ends = append(ends, l.one(&burst[i]))
		}
		for i, p := range ends {
			select {
			case burst[i].outcome = <-p.came:
				burst[i].ended = true
			case <-time.After(l.f.h.Patience):
				return
			}
		}
		at += len(burst)
	}
}

func (l *load) one(c *loadCall) *pending {
	field := strconv.Itoa(c.id)
	call := command("HINCRBY", 1, l.key, field, c.number())
	if c.id%2 == 0 {
		call = eval(add, 1, l.key, field, c.number())
	}
	dice := rand.IntN(16) //nolint:gosec // not used for security
	call.Urgent = dice%4 == 0
	p := l.f.start(l.tr, call)
	switch dice {
	case 0, 1:
		c.withdrawn = call.Abandon()
	case 2, 3:
		<-time.After(time.Duration(rand.IntN(300)) * time.Microsecond) //nolint:gosec // not used for security
		c.withdrawn = call.Abandon()
	}
	return p
}

func (l *load) check() map[class]int {
	tally, faults := map[class]int{}, map[string]int{}
	ran := l.runs()
	for i := range l.calls {
		c := &l.calls[i]
		was := classify(c.outcome.err)
		tally[was]++
		if fault := c.fault(was, ran[i]); fault != "" {
			faults[fault]++
		}
	}
	assert.Empty(l.f.t, faults, "what went wrong, and how often")
	return tally
}

func (c *loadCall) fault(was class, ran int64) string {
	switch {
	case !c.ended:
		return "no outcome"
	case ran > 1:
		return "ran more than once"
	case c.withdrawn && was != notSent:
		return "withdrawn, and not ended as not sent"
	case was == notSent && ran != 0:
		return "ended as not sent, and ran"
	case was == answered && c.outcome.reply != any(c.number()):
		return "another call's reply"
	case was == answered && ran != 1:
		return "answered, and did not run"
	case was == serverError || was == outside:
		return "the error " + c.outcome.err.Error()
	}
	return ""
}

func (l *load) runs() []int64 {
	const chunk = 500
	ran := make([]int64, len(l.calls))
	for from := 0; from < len(ran); from += chunk {
		args := []any{l.key}
		for i := from; i < min(from+chunk, len(ran)); i++ {
			args = append(args, strconv.Itoa(i))
		}
		sums, _ := plain(l.f.h.Do(l.f.t, "HMGET", args...)).([]any)
		for i, sum := range sums {
			c := &l.calls[from+i]
			if sum == nil {
				continue
			}
			n, err := strconv.ParseInt(fmt.Sprint(sum), 10, 64)
			assert.NoError(l.f.t, err)
			assert.Zero(l.f.t, n%c.number(), "call %d wrote to another's field", c.id)
			ran[from+i] = n / c.number()
		}
	}
	return ran
}
