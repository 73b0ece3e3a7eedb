// Package transporttest checks that a [transport.Transport] meets its contract.
//
// A [Harness] makes transports, sends commands to the same server over another connection, and, as
// far as it can, causes faults. [Run] runs the suite:
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
// Each case is a subtest with its own harness. At its end it repairs its faults, closes its transports
// and checks that the done of every call ran exactly once.
//
// Cases that need a fault which the harness cannot cause are skipped. Only faults show whether a
// transport can be trusted with locks. A breakable proxy in front of the server can cause them all:
//
//	CutConnections   calls in flight become uncertain, none runs twice
//	CutSubscribers   a gap after each subscription made anew
//	Freeze           nothing blocks that must not wait for the server
//	HoldReplies      calls that ran do not end as not sent
//	HoldRequest      calls that may run late do not end as not sent
//	Stop             calls that cannot be sent do not end as uncertain
//	Replica          replicas without the write are not counted
//
// Names of keys and channels are unique, so cases can share a server if faults affect only their own
// case. The suite runs SCRIPT FLUSH and no other command that affects the whole server. It does not
// check for leaked goroutines.
package transporttest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// Harness describes a transport and its server to the suite. New and Do are required; cases that need
// another field are skipped if it is nil. All functions but Do are called on the test's goroutine, and
// must end the test if they fail.
type Harness struct {
	// New returns a new transport to the server, which the suite closes.
	New func(tb testing.TB) transport.Transport

	// Do runs a command over a connection that only Freeze and Stop affect. It returns the reply
	// as in RESP2: nil, int64, string or []byte, []any. An error must end the test. In a cluster
	// it uses the node of the first argument.
	Do func(tb testing.TB, cmd string, args ...any) any

	// Subscribers returns the server's number of subscriptions for a channel. The default uses Do
	// with PUBSUB NUMSUB and, if the transport publishes with SPUBLISH, PUBSUB SHARDNUMSUB.
	Subscribers func(tb testing.TB, channel string) int64

	// CutConnections breaks all connections on which the transport sends commands, and possibly
	// others of the transport. New ones work.
	CutConnections func(tb testing.TB)

	// CutSubscribers breaks all connections on which the transport subscribes, and possibly
	// others of the transport. New ones work.
	CutSubscribers func(tb testing.TB)

	// Freeze makes the server answer nothing, on any connection, until Thaw. Connections stay
	// open, and commands sent on them may run after Thaw. Do need not work until then.
	Freeze, Thaw func(tb testing.TB)

	// HoldReplies lets commands run but holds all replies to the transport until release.
	// Connections that are cut break immediately, and their replies are lost.
	HoldReplies func(tb testing.TB) (release func())

	// HoldRequest holds text and all that follows it on the first connection of the transport
	// that sends text to the server, and closes seen when it has some. Other connections pass.
	// CutConnections breaks only the transport's end of such a connection: release still delivers
	// the held bytes to the server, as a network can.
	HoldRequest func(tb testing.TB, text string) (seen <-chan struct{}, release func())

	// Stop breaks all connections and makes the server refuse new ones until Start, which brings
	// it back empty.
	Stop, Start func(tb testing.TB)

	// Forbid revokes the right to a command from every user, Do included.
	Forbid func(tb testing.TB, cmd string)

	// Replica starts a replica, waits until it is in sync, and returns functions that stop and
	// resume the flow of writes to it. It stays connected, and ends with the test.
	Replica func(tb testing.TB) (stop, goOn func())

	// UrgentFirst says that calls can be queued inside the transport, where urgent ones must
	// overtake. It needs Freeze and a New that does not wait for the server.
	UrgentFirst bool

	// Patience is how long the suite waits for an expected event. The default of 30 s is meant
	// for slow machines.
	Patience time.Duration
}

// testCase is a subtest. It is skipped unless the harness has the fields named in needs.
type testCase struct {
	name  string
	run   func(f *fixture)
	needs string
}

// Run runs each case as a subtest with its own harness, made by newHarness, which may call t.Parallel
// if the harnesses are independent.
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
				t.Run(c.name, func(t *testing.T) {
					f := newFixture(t, newHarness(t))
					f.need(c.needs)
					c.run(f)
				})
			}
		})
	}
}

const (
	// defaultPatience is the default of Harness.Patience.
	defaultPatience = 30 * time.Second

	// atOnce is how long an operation may take that must not wait for the server, on a slow
	// machine: just less than the usual command timeout.
	atOnce = 2800 * time.Millisecond

	// pollEvery is the pause between two polls.
	pollEvery = 5 * time.Millisecond
)

// fixture is a case and its harness.
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
	// Cleanups run in reverse order: by then the case's transports are closed.
	t.Cleanup(f.everyDoneRanOnce)
	return f
}

// need skips the case unless the harness has all fields of names.
func (f *fixture) need(names string) {
	f.t.Helper()
	for name := range strings.FieldsSeq(names) {
		if reflect.ValueOf(f.h).FieldByName(name).IsZero() {
			f.t.Skipf("the harness has no %s", name)
		}
	}
}

// open returns a transport that is closed with the case.
func (f *fixture) open() transport.Transport {
	f.t.Helper()
	tr := f.h.New(f.t)
	f.t.Cleanup(func() { f.close(tr) })
	return tr
}

// opened returns a connected transport.
func (f *fixture) opened() transport.Transport {
	f.t.Helper()
	tr := f.open()
	f.recovers(tr)
	return tr
}

// close closes tr, and fails the case if that blocks.
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

// outcome is the arguments of a done.
type outcome struct {
	reply any
	err   error
}

// pending is a started call.
type pending struct {
	call *transport.Call
	came chan outcome // the first outcome
	runs atomic.Int32
}

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

func (f *fixture) await(p *pending) outcome {
	f.t.Helper()
	return receive(f, p.came, "the done of "+p.call.Name()+" has not run")
}

// receive receives a value, or ends the case with the message wrong.
func receive[V any](f *fixture, from <-chan V, wrong string) (v V) {
	f.t.Helper()
	select {
	case v = <-from:
	case <-time.After(f.h.Patience):
		f.t.Fatalf("after %v: %s", f.h.Patience, wrong)
	}
	return v
}

// do runs a call.
func (f *fixture) do(tr transport.Transport, call *transport.Call) outcome {
	f.t.Helper()
	return f.await(f.start(tr, call))
}

// reply runs a call that must succeed, and returns its reply in plain form.
func (f *fixture) reply(tr transport.Transport, call *transport.Call) any {
	f.t.Helper()
	o := f.do(tr, call)
	require.NoError(f.t, o.err, call.Name())
	return plain(o.reply)
}

// recovers waits until tr works; until then errors must be of the contract.
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

// eventually waits until is returns true.
func (f *fixture) eventually(what string, is func() bool) {
	f.t.Helper()
	for limit := time.Now().Add(f.h.Patience); !is(); {
		if time.Now().After(limit) {
			f.t.Fatalf("after %v it is still not so that %s", f.h.Patience, what)
		}
		<-time.After(pollEvery)
	}
}

// during requires that is returns true for a while.
func (f *fixture) during(d time.Duration, what string, is func() bool) {
	f.t.Helper()
	for limit := time.Now().Add(d); time.Now().Before(limit); {
		if !is() {
			f.t.Fatalf("it is not so any more that %s", what)
		}
		<-time.After(pollEvery)
	}
}

// freeze freezes the server until thaw or the end of the case.
func (f *fixture) freeze() (thaw func()) {
	f.t.Helper()
	f.h.Freeze(f.t)
	return f.once(func() { f.h.Thaw(f.t) })
}

// holdReplies holds replies until release or the end of the case.
func (f *fixture) holdReplies() (release func()) {
	f.t.Helper()
	return f.once(f.h.HoldReplies(f.t))
}

// holdRequest holds the request with text until release or the end of the case.
func (f *fixture) holdRequest(text string) (seen <-chan struct{}, release func()) {
	f.t.Helper()
	seen, release = f.h.HoldRequest(f.t, text)
	return seen, f.once(release)
}

// once returns a function that runs mend once, at the latest at the end of the case.
func (f *fixture) once(mend func()) func() {
	mend = sync.OnceFunc(mend)
	f.t.Cleanup(mend)
	return mend
}

// name returns a unique name for a key or a channel. Names with the same tag share a slot.
func (f *fixture) name() string {
	return fmt.Sprintf("transporttest:{%016x}", rand.Uint64()) //nolint:gosec // unique, not secret
}

// value returns the value of key, "" if there is none.
func (f *fixture) value(key string) string {
	f.t.Helper()
	text, _ := plain(f.h.Do(f.t, "GET", key)).(string)
	return text
}
