// Package transporttest checks that a [transport.Transport] meets its contract:
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
// Each case has its own harness. At the end, it repairs its faults, closes its transports and
// checks that every call's done function ran exactly once. Cases that need a fault that the
// [Harness] cannot inject are skipped, but only faults show whether locks can rely on a transport.
//
// Keys and channels are unique, so cases can share a server if faults affect only their own case.
// The only command that affects a whole server is SCRIPT FLUSH.
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

// Harness describes a transport and its server. New and Do are required. Cases that need another
// field are skipped if it is nil. Functions other than Do run on the test's goroutine and must end
// the test on an error.
type Harness struct {
	// New returns a new transport to the server, which the suite closes.
	New func(tb testing.TB) transport.Transport

	// Do runs a command over a connection that only Freeze and Stop affect. In a cluster, the
	// command runs on the node that serves its first argument. Do returns the RESP2 reply: nil,
	// int64, string or []byte, or []any. An error must end the test.
	Do func(tb testing.TB, cmd string, args ...any) any

	// Subscribers returns the number of subscriptions to a channel. The default is PUBSUB NUMSUB
	// and, for transports that use SPUBLISH, PUBSUB SHARDNUMSUB.
	Subscribers func(tb testing.TB, channel string) int64

	// CutConnections breaks at least the transport's connections that send commands. Calls in
	// flight become uncertain, and no call runs twice. New connections work.
	CutConnections func(tb testing.TB)

	// CutSubscribers breaks at least the transport's connections that subscribe. New ones work,
	// and each renewed subscription reports a gap.
	CutSubscribers func(tb testing.TB)

	// Freeze stops the server from replying until Thaw; Do need not work until then. Connections
	// stay open, and commands sent on them may run after Thaw.
	Freeze, Thaw func(tb testing.TB)

	// HoldReplies lets commands run but holds back all replies to the transport until release is
	// called. Connections that are cut break immediately and lose their replies.
	HoldReplies func(tb testing.TB) (release func())

	// HoldRequest holds back text and everything after it on the first connection that sends text,
	// and then closes seen. Other connections are not affected. CutConnections breaks only the
	// transport's end, so that release still delivers the bytes.
	HoldRequest func(tb testing.TB, text string) (seen <-chan struct{}, release func())

	// Stop breaks all connections and refuses new ones until Start, which starts an empty server.
	Stop, Start func(tb testing.TB)

	// Forbid revokes every user's permission to run a command, including that of Do.
	Forbid func(tb testing.TB, cmd string)

	// Replica starts a replica, waits until it is in sync, and returns functions that stop and
	// resume the flow of writes. The replica stays connected until the test ends.
	Replica func(tb testing.TB) (stop, goOn func())

	// UrgentFirst enables cases in which urgent calls must overtake calls queued inside the
	// transport. It needs Freeze and a New that does not wait for the server.
	UrgentFirst bool

	// Patience is how long to wait for an expected event. The default, 30 s, suits slow machines.
	Patience time.Duration
}

type testCase struct {
	name  string
	run   func(f *fixture)
	needs string
}

// Run runs each case as a subtest with its own harness. If the harnesses are independent,
// newHarness may call t.Parallel.
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
	defaultPatience = 30 * time.Second

	// atOnce is slightly less than the usual command timeout.
	atOnce = 2800 * time.Millisecond

	pollEvery = 5 * time.Millisecond
)

type fixture struct {
	t *testing.T
	h Harness

	late bool

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
	// Cleanups run in reverse order, after the case's transports are closed.
	t.Cleanup(f.everyDoneRanOnce)
	return f
}

func (f *fixture) need(names string) {
	f.t.Helper()
	for name := range strings.FieldsSeq(names) {
		if reflect.ValueOf(f.h).FieldByName(name).IsZero() {
			f.t.Skipf("the harness has no %s", name)
		}
	}
}

func (f *fixture) open() transport.Transport {
	f.t.Helper()
	tr := f.h.New(f.t)
	f.t.Cleanup(func() { f.close(tr) })
	return tr
}

func (f *fixture) opened() transport.Transport {
	f.t.Helper()
	tr := f.open()
	f.recovers(tr)
	return tr
}

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

type outcome struct {
	reply any
	err   error
}

type pending struct {
	call *transport.Call
	came chan outcome
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

func receive[V any](f *fixture, from <-chan V, wrong string) (v V) {
	f.t.Helper()
	select {
	case v = <-from:
	case <-time.After(f.h.Patience):
		f.t.Fatalf("after %v: %s", f.h.Patience, wrong)
	}
	return v
}

func (f *fixture) do(tr transport.Transport, call *transport.Call) outcome {
	f.t.Helper()
	return f.await(f.start(tr, call))
}

func (f *fixture) reply(tr transport.Transport, call *transport.Call) any {
	f.t.Helper()
	o := f.do(tr, call)
	require.NoError(f.t, o.err, call.Name())
	return plain(o.reply)
}

// recovers waits until tr works. Until then, its errors must satisfy the contract.
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

func (f *fixture) eventually(what string, is func() bool) {
	f.t.Helper()
	for limit := time.Now().Add(f.h.Patience); !is(); {
		if time.Now().After(limit) {
			f.t.Fatalf("after %v: still not true: %s", f.h.Patience, what)
		}
		<-time.After(pollEvery)
	}
}

func (f *fixture) during(d time.Duration, what string, is func() bool) {
	f.t.Helper()
	for limit := time.Now().Add(d); time.Now().Before(limit); {
		if !is() {
			f.t.Fatalf("no longer true: %s", what)
		}
		<-time.After(pollEvery)
	}
}

func (f *fixture) freeze() (thaw func()) {
	f.t.Helper()
	f.h.Freeze(f.t)
	return f.once(func() { f.h.Thaw(f.t) })
}

func (f *fixture) holdReplies() (release func()) {
	f.t.Helper()
	return f.once(f.h.HoldReplies(f.t))
}

func (f *fixture) holdRequest(text string) (seen <-chan struct{}, release func()) {
	f.t.Helper()
	seen, release = f.h.HoldRequest(f.t, text)
	return seen, f.once(release)
}

// once returns a function that runs repair only once. The end of the case also calls it.
func (f *fixture) once(repair func()) func() {
	repair = sync.OnceFunc(repair)
	f.t.Cleanup(repair)
	return repair
}

// name returns a unique name. Names with the same tag share a slot.
func (f *fixture) name() string {
	return fmt.Sprintf("transporttest:{%016x}", rand.Uint64()) //nolint:gosec // unique, not secret
}

func (f *fixture) value(key string) string {
	f.t.Helper()
	text, _ := plain(f.h.Do(f.t, "GET", key)).(string)
	return text
}
