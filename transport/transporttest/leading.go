package transporttest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

var leadCases = []testCase{
	{"Leads: a transport that wraps this one is not passed by", leadsItselfOnly},
	{"Lead: every call ends once, with its own reply", leadReplies},
	{"Lead: the caller is notified of the start, once", leadStarted},
	{"Lead: an ended context ends it, and the call goes on", leadContext},
	{"Lead: Interrupt ends it, and the call goes on", leadInterrupted},
	{"Lead: Close ends it", leadClosed},
	{"Lead: every call ends once, with its own reply, while connections are cut", leadWhileCut},
}

// caller is a transport.Caller.
type caller struct {
	started atomic.Int32
	left    atomic.Bool
}

func (c *caller) Started()    { c.started.Add(1) }
func (c *caller) Waits() bool { return !c.left.Load() }

// leader also leads calls until callers read, where they do so after a while.
func (f *fixture) leader() (transport.Transport, transport.Leader) {
	f.t.Helper()
	tr := f.open()
	l := as[transport.Leader](f, tr, "Leader")
	require.True(f.t, l.Leads(tr), "it does not lead its own calls")
	f.recovers(tr)
	for i := range 40 {
		f.leadEcho(l, fmt.Sprint(i))
	}
	return tr, l
}

// lead leads a call, and keeps watch over its done.
func (f *fixture) lead(ctx context.Context, l transport.Leader, call *transport.Call, c *caller) *pending {
	p := f.watch(call)
	l.Lead(ctx, call, p.done, c)
	return p
}

// leadEcho leads a call that must get its reply.
func (f *fixture) leadEcho(l transport.Leader, text string) {
	f.t.Helper()
	o := f.await(f.lead(f.t.Context(), l, command("ECHO", 0, text), &caller{}))
	require.NoError(f.t, o.err)
	require.Equal(f.t, text, plain(o.reply))
}

// background leads a call on a goroutine, and returns what is closed when Lead has returned.
func (f *fixture) background(ctx context.Context, l transport.Leader, call *transport.Call, c *caller) (p *pending, back <-chan struct{}) {
	p = f.watch(call)
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		l.Lead(ctx, call, p.done, c)
	}()
	return p, returned
}

// returns waits until Lead has returned.
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

// callers lets callers lead calls, and some start them.
func (f *fixture) callers(tr transport.Transport, l transport.Leader, n, calls int) {
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
	_, l := f.leader()
	for range 20 {
		c := &caller{}
		f.await(f.lead(f.t.Context(), l, command("ECHO", 0, "x"), c))
		require.EqualValues(f.t, 1, c.started.Load())
	}
}

func leadContext(f *fixture) {
	f.need("HoldReplies", f.h.HoldReplies != nil)
	tr, l := f.leader()
	release := f.holdReplies()
	ctx, cancel := context.WithTimeout(f.t.Context(), 50*time.Millisecond)
	defer cancel()
	p, back := f.background(ctx, l, command("ECHO", 0, "late"), &caller{})
	f.returns(back)
	assert.Zero(f.t, p.runs.Load(), "there is no reply yet")
	release()
	assert.Equal(f.t, "late", plain(f.await(p).reply))
	f.recovers(tr)
}

func leadInterrupted(f *fixture) {
	f.need("HoldReplies", f.h.HoldReplies != nil)
	tr, l := f.leader()
	release := f.holdReplies()
	c := &caller{}
	p, back := f.background(f.t.Context(), l, command("ECHO", 0, "late"), c)
	f.eventually("the call was started", func() bool { return c.started.Load() > 0 })
	c.left.Store(true)
	l.Interrupt(p.call)
	f.returns(back)
	release()
	assert.Equal(f.t, "late", plain(f.await(p).reply))
	f.recovers(tr)
}

func leadClosed(f *fixture) {
	f.need("HoldReplies", f.h.HoldReplies != nil)
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
	f.need("CutConnections", f.h.CutConnections != nil)
	tr, l := f.leader()
	for _, n := range []int{1, 2, 8} {
		over := make(chan struct{})
		go func() {
			defer close(over)
			f.callers(tr, l, n, 300)
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
