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
	select {
	case o := <-p.came:
		return o
	case <-time.After(f.h.Patience):
		f.t.Fatalf("the done of %s has not run after %v", p.call.Name(), f.h.Patience)
		return outcome{}
	}
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
