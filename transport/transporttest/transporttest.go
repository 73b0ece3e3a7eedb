// Package transporttest checks that a transport.Transport keeps its contract.
//
// The author of a transport describes to the suite, in a [Harness], how to
// make one, how to ask the same server over another connection, and, as far as
// possible, how to break things. [Run] does the rest:
//
//	func TestConformance(t *testing.T) {
//		transporttest.Run(t, func(t *testing.T) transporttest.Harness {
//			return transporttest.Harness{
//				New: func(testing.TB) transport.Transport { return adapter.New(addr) },
//				Do:  control.Do,
//			}
//		})
//	}
//
// # The life of a case
//
//	newHarness ──▶ New ──▶ calls, subscriptions, faults ──▶ Close ──▶ every done
//	                                                                 ran once?
//
// Each case is a subtest with a harness of its own. It makes the transports it
// needs, and when it is over it mends what it has broken and closes them. After
// that one more check is made of every case, whatever it was about: each call
// that was started has had its done run, exactly once.
//
// # Faults
//
// A case that needs a fault which the harness cannot cause is skipped and says
// so. Without any fault the suite checks what calls and subscriptions do when
// all is well; it is the faults that show whether a transport can be trusted
// with locks. A breakable proxy in front of the server can cause all of them.
//
//	CutConnections   calls in flight become uncertain, none runs twice
//	CutSubscribers   a gap after each subscription made anew
//	Freeze           nothing that should not wait for the server does
//	HoldReplies      what ran is not taken for what did not
//	HoldRequest      what may still run is not taken for what never will
//	Stop             what cannot be sent is not taken for what may have run
//	Replica          a replica that has not the write is not taken for one that has
//
// Names of keys and channels are unique, so one server may serve many cases, as
// long as a fault strikes only the case that caused it. The suite runs SCRIPT
// FLUSH, and no other command that concerns the server as a whole.
//
// The suite does not look for goroutines left behind: that is for the caller,
// in TestMain or after Run, since only the caller knows what its own client
// library leaves.
package transporttest

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// Harness is what the suite needs to know of a transport and its server. New
// and Do are required. The faults are optional: with a nil one, the cases that
// need it are skipped. All functions but Do are called from the test's own
// goroutine only, and end the test when they fail.
type Harness struct {
	// New returns a new transport to the server, connected or not. The suite
	// closes it.
	New func(tb testing.TB) transport.Transport

	// Do runs one command over a connection that is not the transport's, and
	// that no fault but Freeze and Stop concerns. It returns the reply in the
	// shapes of RESP2: nil, int64, string or []byte, []any. An error of any kind
	// ends the test. In a cluster it asks the node of the first argument.
	Do func(tb testing.TB, cmd string, args ...any) any

	// Subscribers returns how many subscriptions the server has for a channel.
	// The default asks with Do: PUBSUB NUMSUB and, where the transport publishes
	// with SPUBLISH, PUBSUB SHARDNUMSUB.
	Subscribers func(tb testing.TB, channel string) int64

	// CutConnections breaks all connections on which the transport sends
	// commands, if need be others of the transport too. New ones work.
	CutConnections func(tb testing.TB)

	// CutSubscribers breaks all connections on which the transport listens, if
	// need be others of the transport too. New ones work.
	CutSubscribers func(tb testing.TB)

	// Freeze makes the server answer nothing, on connections old and new, until
	// Thaw. Connections stay, and what is sent on them may run at Thaw. Do need
	// not work meanwhile.
	Freeze, Thaw func(tb testing.TB)

	// HoldReplies lets commands run and holds back what the server answers, on
	// all connections of the transport, until release. Connections that are cut
	// meanwhile break at once, and what is held for them is lost.
	HoldReplies func(tb testing.TB) (release func())

	// HoldRequest holds back, on the first connection of the transport that
	// carries text to the server, that text and all after it, and closes seen
	// when it has some. Other connections pass. CutConnections breaks the
	// transport's end of such a connection only: release still delivers to the
	// server what was held, as a network can.
	HoldRequest func(tb testing.TB, text string) (seen <-chan struct{}, release func())

	// Stop makes the server refuse connections, after it has broken all there
	// are, until Start. Start brings it back, empty.
	Stop, Start func(tb testing.TB)

	// Forbid takes the right to a command from every user, Do included.
	Forbid func(tb testing.TB, cmd string)

	// Replica brings a replica of the server up, in step with it, and returns what stops
	// the server's writes from reaching it, and lets them go on. It stays connected
	// meanwhile. It ends with the test.
	Replica func(tb testing.TB) (stop, goOn func())

	// UrgentFirst says that calls can wait inside the transport for a
	// connection, so that urgent ones must overtake there. It needs Freeze, and
	// a New that does not wait for the server.
	UrgentFirst bool

	// Patience is how long the suite waits for what must happen before it calls
	// it missing. The default is 30 s: nothing is learnt from a machine that is
	// merely slow.
	Patience time.Duration
}

// testCase is one subtest. Its name is a sentence.
type testCase struct {
	name string
	run  func(f *fixture)
}

// Run runs the suite: a subtest for every case, each with a harness of its own,
// which newHarness makes for it. Where the harnesses do not disturb each other,
// newHarness may begin with t.Parallel.
func Run(t *testing.T, newHarness func(t *testing.T) Harness) {
	t.Helper()
	groups := []struct {
		name  string
		cases []testCase
	}{
		{"calls", callCases},
		{"scripts", scriptCases},
		{"abandoned", abandonCases},
		{"load", loadCases},
		{"faults", faultCases},
		{"subscriptions", subscribeCases},
		{"gaps", gapCases},
		{"close", closeCases},
		{"optional", optionalCases},
		{"lead", leadCases},
		{"replicas", replicaCases},
	}
	for _, g := range groups {
		t.Run(g.name, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.name, func(t *testing.T) { c.run(newFixture(t, newHarness(t))) })
			}
		})
	}
}

const (
	// defaultPatience is Harness.Patience unless given.
	defaultPatience = 30 * time.Second

	// atOnce is how long something may take that must not wait for the server,
	// on a machine that is merely slow: just less than the usual command timeout.
	atOnce = 2800 * time.Millisecond

	// pollEvery is the pause between two looks at the server.
	pollEvery = 5 * time.Millisecond
)

// fixture is one case's view of its harness.
type fixture struct {
	t *testing.T
	h Harness

	mu      sync.Mutex // guards started
	started []*pending
}

func newFixture(t *testing.T, h Harness) *fixture {
	t.Helper()
	require.NotNil(t, h.New, "Harness.New")
	require.NotNil(t, h.Do, "Harness.Do")
	if h.Patience <= 0 {
		h.Patience = defaultPatience
	}
	f := &fixture{t: t, h: h}
	// Cleanups run last first: by then all transports of the case are closed.
	t.Cleanup(f.everyDoneRanOnce)
	return f
}

// need skips the case unless the harness has what it needs.
func (f *fixture) need(name string, has bool) {
	f.t.Helper()
	if !has {
		f.t.Skipf("the harness has no %s", name)
	}
}

// open makes a transport that is closed with the case.
func (f *fixture) open() transport.Transport {
	f.t.Helper()
	tr := f.h.New(f.t)
	f.t.Cleanup(func() { f.close(tr) })
	return tr
}

// opened is open, and a first call, so that the transport is connected.
func (f *fixture) opened() transport.Transport {
	f.t.Helper()
	tr := f.open()
	f.recovers(tr)
	return tr
}

// close closes tr and fails the case if that takes for ever.
func (f *fixture) close(tr transport.Transport) {
	f.t.Helper()
	closed := make(chan error, 1)
	go func() { closed <- tr.Close() }()
	select {
	case err := <-closed:
		assert.NoError(f.t, err, "Close")
	case <-time.After(f.h.Patience):
		f.t.Errorf("Close has not returned after %v", f.h.Patience)
	}
}

// outcome is what a done was given.
type outcome struct {
	reply any
	err   error
}

// pending is a call that was started.
type pending struct {
	call *transport.Call
	came chan outcome // the first outcome
	runs atomic.Int32
}

// start starts a call and keeps watch over its done.
func (f *fixture) start(tr transport.Transport, call *transport.Call) *pending {
	p := f.watch(call)
	tr.Start(call, p.done)
	return p
}

func (f *fixture) watch(call *transport.Call) *pending {
	p := &pending{call: call, came: make(chan outcome, 1)}
	f.mu.Lock()
	f.started = append(f.started, p)
	f.mu.Unlock()
	return p
}

func (p *pending) done(reply any, err error) {
	if p.runs.Add(1) == 1 {
		p.came <- outcome{reply, err}
	}
}

func (f *fixture) everyDoneRanOnce() {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	never, again := 0, 0
	for _, p := range f.started {
		switch p.runs.Load() {
		case 0:
			never++
		case 1:
		default:
			again++
		}
	}
	assert.Zero(f.t, never, "calls of %d whose done never ran, although the transport is closed", len(f.started))
	assert.Zero(f.t, again, "calls of %d whose done ran more than once", len(f.started))
}

// await waits for the outcome of a call.
func (f *fixture) await(p *pending) outcome {
	f.t.Helper()
	return receive(f, p.came, "the done of "+p.call.Name()+" has not run")
}

// receive waits for what comes from a channel, and ends the case with what is wrong if nothing
// does.
func receive[V any](f *fixture, from <-chan V, wrong string) (v V) {
	f.t.Helper()
	select {
	case v = <-from:
	case <-time.After(f.h.Patience):
		f.t.Fatalf("after %v: %s", f.h.Patience, wrong)
	}
	return v
}

// do runs a call and returns its outcome.
func (f *fixture) do(tr transport.Transport, call *transport.Call) outcome {
	f.t.Helper()
	return f.await(f.start(tr, call))
}

// reply runs a call that must succeed, and returns its reply made plain.
func (f *fixture) reply(tr transport.Transport, call *transport.Call) any {
	f.t.Helper()
	o := f.do(tr, call)
	require.NoError(f.t, o.err, call.Name())
	return plain(o.reply)
}

// recovers waits until tr works, through errors of the contract only.
func (f *fixture) recovers(tr transport.Transport) {
	f.t.Helper()
	key := f.name()
	f.eventually("the transport works", func() bool {
		o := f.do(tr, command("GET", 1, key))
		if o.err != nil {
			f.inContract(o.err)
		}
		return o.err == nil
	})
}

// eventually waits until something is the case.
func (f *fixture) eventually(what string, is func() bool) {
	f.t.Helper()
	for limit := time.Now().Add(f.h.Patience); !is(); {
		if time.Now().After(limit) {
			f.t.Fatalf("after %v it is still not so that %s", f.h.Patience, what)
		}
		<-time.After(pollEvery)
	}
}

// during holds for a while that something stays the case. It is for what may
// happen late, and must not happen at all.
func (f *fixture) during(d time.Duration, what string, is func() bool) {
	f.t.Helper()
	for limit := time.Now().Add(d); time.Now().Before(limit); {
		if !is() {
			f.t.Fatalf("it is not so any more that %s", what)
		}
		<-time.After(pollEvery)
	}
}

// freeze freezes the server until thaw, or the end of the case.
func (f *fixture) freeze() (thaw func()) {
	f.t.Helper()
	f.h.Freeze(f.t)
	return f.once(func() { f.h.Thaw(f.t) })
}

// holdReplies holds replies until release, or the end of the case.
func (f *fixture) holdReplies() (release func()) {
	f.t.Helper()
	return f.once(f.h.HoldReplies(f.t))
}

// holdRequest holds the request with text in it until release, or the end of
// the case.
func (f *fixture) holdRequest(text string) (seen <-chan struct{}, release func()) {
	f.t.Helper()
	seen, release = f.h.HoldRequest(f.t, text)
	return seen, f.once(release)
}

// once makes mend run once: when it is called, or at the end of the case.
func (f *fixture) once(mend func()) func() {
	mend = sync.OnceFunc(mend)
	f.t.Cleanup(mend)
	return mend
}

// name returns a name for a key or a channel that is used nowhere else. Names
// with one tag share a slot.
func (f *fixture) name() string {
	return fmt.Sprintf("transporttest:{%016x}", rand.Uint64()) //nolint:gosec // unique, not secret
}

// value returns what GET answers, "" when there is nothing.
func (f *fixture) value(key string) string {
	f.t.Helper()
	text, _ := plain(f.h.Do(f.t, "GET", key)).(string)
	return text
}
