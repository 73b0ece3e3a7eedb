package compat

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/monitor"
	"github.com/redlatch/redlatch/internal/test/peer"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/test/compat/oracle"
)

// watchdogMS is the watchdog timeout of clients here: short, so that renewals
// come soon, and long enough for a machine that stands still for 2 seconds. No lease
// that the tests of scripts give is the same.
const watchdogMS = 6000

// observed is a server on which everything that clients send is seen.
type observed struct {
	server *redistest.Server
	watch  *oracle.Watch
}

func observe(t *testing.T) observed {
	t.Helper()
	return observeOn(t, redistest.Start(t))
}

func observeOn(t *testing.T, server *redistest.Server) observed {
	t.Helper()
	w, err := oracle.NewWatch(server.Dial(t), server.Dial(t))
	require.NoError(t, err)
	return observed{server, w}
}

// about returns what was sent about a name since the last time.
func (o observed) about(t *testing.T, name string) []monitor.Call {
	t.Helper()
	calls, err := o.watch.Since(name)
	require.NoError(t, err)
	return calls
}

// script returns the one script that was sent about a name.
func (o observed) script(t *testing.T, name string) monitor.Call {
	t.Helper()
	scripts := o.scripts(t, name)
	require.Len(t, scripts, 1)
	return scripts[0]
}

// scripts returns the scripts that were sent about a name. There may be others: Redisson's
// deletion of a latch, and subscriptions.
func (o observed) scripts(t *testing.T, name string) []monitor.Call {
	t.Helper()
	var scripts []monitor.Call
	for _, call := range o.about(t, name) {
		switch {
		case call.Script != "":
			scripts = append(scripts, call)
		case call.Name() == "SUBSCRIBE" || call.Name() == "UNSUBSCRIBE":
		case call.Name() != "DEL" || !strings.HasPrefix(call.Args[1], "redisson_unlock_latch:"):
			t.Fatalf("Redisson sent %q about %q", call.Args, name)
		}
	}
	return scripts
}

// scripts compares what is sent and what it does.
type scripts struct {
	*compat
	start  func(t *testing.T) *redistest.Server
	where  string // ends the lines of the table; none for the tests' own server
	on     observed
	theirs *oracle.Theirs
	twin   *oracle.Twin
}

// testScripts runs on the tests' own server and on Valkey, side by side.
func (c *compat) testScripts(t *testing.T) {
	testlevel.NoRace(t, testlevel.OneGoroutine)
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		s := c.scripts(t, func(t *testing.T) *redistest.Server { t.Helper(); return redistest.Start(t) })
		s.note(t, "server", s.on.server.Name()+" "+s.on.server.Version())
		t.Run("steps", s.testSteps)
		t.Run("recorded", s.testRecorded)
		t.Run("our calls", s.testOurCalls)
		t.Run("our calls, fair", s.testOurFairCalls)
		t.Run("our calls, read and write", s.testOurReadWriteCalls)
		t.Run("our calls, semaphores and latches", s.testOurObjectCalls)
		t.Run("questions", s.testQuestions)
	})
	t.Run("valkey", func(t *testing.T) {
		t.Parallel()
		s := c.scripts(t, func(t *testing.T) *redistest.Server { t.Helper(); return redistest.StartValkey(t) })
		s.where = fmt.Sprintf(", on %s %s", s.on.server.Name(), s.on.server.Version())
		t.Run("steps", s.testSteps)
		t.Run("recorded", s.testRecorded)
		t.Run("our calls", s.testOurCalls)
		t.Run("our calls, fair", s.testOurFairCalls)
		t.Run("our calls, read and write", s.testOurReadWriteCalls)
		t.Run("our calls, semaphores and latches", s.testOurObjectCalls)
	})
}

// scripts makes a live Redisson send its scripts.
func (c *compat) scripts(t *testing.T, start func(t *testing.T) *redistest.Server) scripts {
	t.Helper()
	twin, err := oracle.NewTwin(dialer(start(t)), dialer(start(t)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, twin.Close()) })
	on := observeOn(t, start(t))
	return scripts{compat: c, start: start, on: on, theirs: c.capture(t, on), twin: twin}
}

// note writes a line of the table.
func (s scripts) note(t *testing.T, line, verdict string) {
	t.Helper()
	s.table.note(t, s.release.String(), line+s.where, func() string { return verdict })
}

// lockNames are names of every kind: the names of keys and channels follow from
// them.
func lockNames(t *testing.T) []string {
	t.Helper()
	l := redistest.Key(t)
	return []string{l, "{tag}" + l, "a{b" + l, l + "}", "{}" + l, "замок " + l}
}

// capture makes a live Redisson do everything that it does to locks, and checks each
// call's keys and arguments on the way.
func (c *compat) capture(t *testing.T, o observed) *oracle.Theirs {
	t.Helper()
	theirs := oracle.NewTheirs(c.release)
	j := connect(t, c.peer, o.server, peer.Command{"watchdog": watchdogMS})
	for i, name := range lockNames(t) {
		k := &captor{t: t, o: o, j: j, theirs: theirs, name: name}
		k.threads()
		k.force()
		k.futures()
		k.name = name + " fair"
		f := fairCaptor{k}
		f.threads()
		f.force()
		f.futures()
		if i < 2 { // without braces, and with
			f.waits()
		}
		k.name = name + " read/write"
		rw := rwCaptor{k}
		rw.readers()
		rw.writers()
		rw.force()
		rw.futures()
		for kind, use := range map[string]func(objectCaptor){
			"semaphore": objectCaptor.semaphore, "permits": objectCaptor.permits, "latch": objectCaptor.latch,
		} {
			k.name = name + " " + kind
			use(objectCaptor{k})
		}
	}
	k := &captor{t: t, o: o, j: j, theirs: theirs, name: redistest.Key(t)}
	k.renewal()
	k.name = redistest.Key(t)
	fairCaptor{k}.renewal()
	k.name = redistest.Key(t)
	rwCaptor{k}.renewals()
	if c.release.HasFenced() {
		k.name = redistest.Key(t)
		k.tokens()
	}
	for _, kind := range oracle.KindsOf(c.release) {
		require.Empty(t, theirs.Missing(kind))
	}
	return theirs
}

// captor plays through one lock.
type captor struct {
	t      *testing.T
	o      observed
	j      *java
	theirs *oracle.Theirs
	name   string
}

// learn takes the script that the last command sent.
func (k *captor) learn(op *oracle.Operation, owner string, lease int64) {
	k.t.Helper()
	k.check(k.o.script(k.t, k.name), op, owner, lease)
}

// next is the script that is sent next. Redisson renews all its locks at once, so that a renewal
// may follow an acquisition at any time.
func (k *captor) next() monitor.Call {
	k.t.Helper()
	call, err := k.o.watch.Until(k.name)
	require.NoError(k.t, err)
	return call
}

func (k *captor) check(call monitor.Call, op *oracle.Operation, owner string, lease int64) {
	k.t.Helper()
	want := oracle.Step{Op: op, Names: []string{k.name}, Owner: owner, Lease: lease}
	require.NoError(k.t, oracle.Identify(k.theirs.Release, call, want))
	require.NoError(k.t, k.theirs.Learn(op, call))
}

func (k *captor) does(op string, fields peer.Command) {
	k.t.Helper()
	k.j.do(k.t, peer.Command{"op": op, "name": k.name}.With(fields))
}

// threads: a thread enters twice, another is refused, and the first leaves three
// times, once too often.
func (k *captor) threads() {
	k.t.Helper()
	const lease = 7000
	t1 := peer.Command{"thread": "t1"}
	r, owner := k.theirs.Release, k.j.owner(k.t, "t1")
	k.does("lock", t1.With(peer.Command{"lease": 5000}))
	k.learn(oracle.Acquire, owner, 5000)
	k.does("tryLock", t1.With(peer.Command{"lease": lease}))
	k.learn(oracle.Acquire, owner, lease)
	// Another lock object, so the first one's memory stays as it is.
	k.does("tryLock", peer.Command{"thread": "t2", "object": "other"})
	k.learn(oracle.Acquire, k.j.owner(k.t, "t2"), watchdogMS)

	k.does("unlock", t1)
	k.learn(oracle.Free, owner, lease)
	next := r.LeaseAfterUnlock(lease, watchdogMS, false)
	k.does("unlock", t1)
	k.learn(oracle.Free, owner, next)
	next = r.LeaseAfterUnlock(next, watchdogMS, true)
	k.j.throws(k.t, "IllegalMonitorStateException", t1.With(peer.Command{"op": "unlock", "name": k.name}))
	k.learn(oracle.Free, owner, next)
}

func (k *captor) force() {
	k.t.Helper()
	k.does("lock", peer.Command{"thread": "t1", "lease": 5000})
	k.learn(oracle.Acquire, k.j.owner(k.t, "t1"), 5000)
	for range 2 {
		k.does("forceUnlock", peer.Command{"thread": "t2"})
		k.learn(oracle.Force, "", 0)
	}
}

// futures: with the asynchronous calls the number of an owner is the caller's
// choice.
func (k *captor) futures() {
	k.t.Helper()
	for _, n := range []int64{0, -5, 1 << 62} {
		owner := fmt.Sprintf("%s:%d", k.j.id, n)
		fields := peer.Command{"threadId": n, "object": strconv.FormatInt(n, 10)}
		k.does("lockAsync", fields.With(peer.Command{"lease": 8000}))
		k.learn(oracle.Acquire, owner, 8000)
		k.does("unlockAsync", fields)
		k.learn(oracle.Free, owner, 8000)
		k.does("tryLockAsync", fields.With(peer.Command{"wait": 100, "lease": 4000}))
		k.learn(oracle.Acquire, owner, 4000)
		k.does("unlockAsync", fields)
		k.learn(oracle.Free, owner, 4000)
	}
}

func (k *captor) renewal() {
	k.t.Helper()
	k.does("lock", peer.Command{"thread": "t1"})
	k.check(k.next(), oracle.Acquire, k.j.owner(k.t, "t1"), watchdogMS)
	k.check(k.next(), oracle.Renew, k.j.owner(k.t, "t1"), watchdogMS)
	k.does("unlock", peer.Command{"thread": "t1"})
}

// tokens: a thread enters a fenced lock twice and is renewed; with a lease of its own it takes
// another, leaves it, and has it forced. All but the grants is done by the scripts of the plain
// lock.
func (k *captor) tokens() {
	k.t.Helper()
	t1 := fenced(peer.Command{"thread": "t1"})
	owner := k.j.owner(k.t, "t1")
	for range 2 {
		k.does("lockAndGetToken", t1)
		// On a slow machine a renewal may have come before.
		sent := k.o.scripts(k.t, k.name)
		i := slices.IndexFunc(sent, notRenewal(k.theirs.Release, owner, k.name))
		require.GreaterOrEqual(k.t, i, 0, "%d renewals, and nothing else", len(sent))
		k.check(sent[i], oracle.AcquireToken, owner, watchdogMS)
	}
	k.check(k.next(), oracle.Renew, owner, watchdogMS)
	k.does("forceUnlock", t1)

	k.name += " leased"
	for range 2 {
		k.does("lock", t1.With(peer.Command{"lease": 5000}))
		k.learn(oracle.AcquireCounted, owner, 5000)
		k.does("unlock", t1)
		k.learn(oracle.Free, owner, 5000)
	}
	k.does("forceUnlock", t1)
	k.learn(oracle.Force, "", 0)
}

// notRenewal tells the calls that do not renew the owner's hold.
func notRenewal(r oracle.Release, owner, name string) func(monitor.Call) bool {
	renew := oracle.Step{Op: oracle.Renew, Names: []string{name}, Owner: owner, Lease: watchdogMS}
	return func(call monitor.Call) bool { return oracle.Identify(r, call, renew) != nil }
}

// testQuestions holds that questions are the same commands on both sides.
func (s scripts) testQuestions(t *testing.T) {
	o := s.on
	s.table.note(t, s.release.String(), "questions", func() string { return "same" })
	j := connect(t, s.peer, o.server, nil)
	client := open(t, o.server)
	name := redistest.Key(t)
	lock := rlock.New(client, name)
	owner, err := codec.ParseOwner(j.owner(t, "t1"))
	require.NoError(t, err)
	j.do(t, peer.Command{"op": "lock", "thread": "t1", "name": name, "lease": 60000})
	o.about(t, name)

	ask := func(op string, ours func(ctx context.Context) error) {
		t.Helper()
		j.do(t, peer.Command{"op": op, "thread": "t1", "name": name, "threadId": owner.N()})
		theirs := o.about(t, name)
		require.NoError(t, ours(t.Context()))
		mine := o.about(t, name)
		require.Len(t, theirs, 1)
		require.Len(t, mine, 1)
		require.Equal(t, theirs[0].Name(), mine[0].Name())
		require.Equal(t, theirs[0].Args[1:], mine[0].Args[1:])
	}
	ask("isLocked", func(ctx context.Context) error { _, err := lock.IsLocked(ctx); return err })
	ask("isHeldByThread", func(ctx context.Context) error { _, err := lock.IsHeldBy(ctx, owner); return err })
	ask("getHoldCount", func(ctx context.Context) error { _, err := lock.HoldCount(ctx, owner); return err })
	ask("remainTimeToLive", func(ctx context.Context) error { _, err := lock.TTL(ctx); return err })
}

// open makes a client of ours for this test.
func open(t *testing.T, s *redistest.Server, opts ...redlatch.Option) *redlatch.Client {
	t.Helper()
	client, err := redlatch.Open(t.Context(), s.URL(), opts...)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	return client
}

// dialer returns how to connect to a server.
func dialer(s *redistest.Server) func() (redis.Conn, error) {
	return func() (redis.Conn, error) { return redis.Dial("tcp", s.Addr()) }
}
