// Package locksuite tests what both kinds of locks must do whatever transport they are on
// and whatever deployment that leads to: one server, what Sentinels watch, a cluster. The
// locks' own packages test far more, on the built-in transport; here is what a transport,
// or a deployment, can spoil.
//
// # The life of a case
//
//	Run ─▶ for each kind ─▶ for each case: clients on transports of their own ─▶
//	what the case does ─▶ clients closed ─▶ nothing is left on the server
//
// Cases run in parallel, with names of their own, on one deployment, and break nothing.
// Tests that break the deployment use a [Contenders]: workers that take a lock again and again,
// from before the failure until after it, and a check that no two of them had it at once,
// and that acquisitions go on.
package locksuite

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/transport"
)

// soon is far more than anything takes that is waited for.
const soon = callers.Soon

// givenBack bounds how long something may be left on a server that answers: long before
// the end of a lease would have taken it away.
const givenBack = 10 * time.Second

// Deployment is what the suite runs on.
type Deployment struct {
	// New returns a transport for one client only, which closes it.
	New func(tb testing.TB) transport.Transport
	// Open returns a client that is used for one test only. It takes the place of New.
	Open func(tb testing.TB, opts ...redlatch.Option) *redlatch.Client
	// Do runs one command on the master that serves key, over a connection that is
	// not a transport's, and returns what redigo would.
	Do func(tb testing.TB, key, cmd string, args ...any) any
	// Publish lists the commands that peers may publish with, the transport's own
	// first: each must wake.
	Publish []string
	// Uncounted is true where listeners cannot be counted: dead waiters stay there until
	// their deadlines.
	Uncounted bool
}

// OnServer is the deployment of one server, or of one master at a time.
func OnServer(s interface {
	Do(tb testing.TB, cmd string, args ...any) any
}, open func(tb testing.TB) transport.Transport,
) Deployment {
	return Deployment{
		New: open,
		Do: func(tb testing.TB, _, cmd string, args ...any) any {
			tb.Helper()
			return s.Do(tb, cmd, args...)
		},
		Publish: []string{"PUBLISH"},
	}
}

// Kind is a kind of lock.
type Kind struct {
	// Name is that of the kind, such as "plain".
	Name string
	// Queues is true for a kind with a queue on the server.
	Queues bool
	// New makes a lock of the kind.
	New func(c *redlatch.Client, name string) *rlock.Lock
	// ReadWrite is true for a role of a read/write lock.
	ReadWrite bool
}

// channel returns the channel of a lock of the kind.
func (k Kind) channel(name string) string {
	if k.ReadWrite {
		return codec.ReadWriteChannel(name)
	}
	return codec.LockChannel(name)
}

// Kinds are the kinds of locks that [Run] runs all cases for.
var Kinds = []Kind{{Name: "plain", New: rlock.New}, {Name: "fair", Queues: true, New: rfairlock.New}}

// Fenced are the kinds of locks with tokens, without the tokens.
var Fenced = []Kind{
	{Name: "fenced", New: withoutTokens(rfencedlock.New)}, {Name: "fair-fenced", Queues: true, New: withoutTokens(rfencedlock.NewFair)},
}

// Writer is the writer of a read/write lock, without readers.
var Writer = Kind{Name: "write", ReadWrite: true, New: func(c *redlatch.Client, name string) *rlock.Lock {
	return rreadwritelock.New(c, name).Write()
}}

// Reader is the reader of a read/write lock.
var Reader = Kind{Name: "read", ReadWrite: true, New: func(c *redlatch.Client, name string) *rlock.Lock {
	return rreadwritelock.New(c, name).Read()
}}

func withoutTokens(
	make func(c *redlatch.Client, name string, opts ...rfencedlock.Option) *rfencedlock.Lock,
) func(c *redlatch.Client, name string) *rlock.Lock {
	return func(c *redlatch.Client, name string) *rlock.Lock {
		l := &rlock.Lock{}
		*l.Internal() = *make(c, name).Internal()
		return l
	}
}

// Client returns a client on a transport of its own, which is closed with the test.
func (d Deployment) Client(tb testing.TB, opts ...redlatch.Option) *redlatch.Client {
	tb.Helper()
	c := d.opened(tb, opts...)
	tb.Cleanup(func() { assert.NoError(tb, c.Close()) })
	return c
}

// opened returns a client that the test closes.
func (d Deployment) opened(tb testing.TB, opts ...redlatch.Option) *redlatch.Client {
	tb.Helper()
	if d.Open != nil {
		return d.Open(tb, opts...)
	}
	c, err := redlatch.NewWithTransport(d.New(tb), opts...)
	require.NoError(tb, err)
	return c
}

// suite is one case.
type suite struct {
	Deployment
	kind Kind
}

type testCase struct {
	name string
	run  func(t *testing.T, s suite)
}

// Run runs all cases for both kinds of locks.
func Run(t *testing.T, d Deployment) {
	t.Helper()
	for _, k := range Kinds {
		RunKind(t, d, k)
	}
}

// RunKind runs all cases for one kind of lock.
func RunKind(t *testing.T, d Deployment, k Kind) {
	t.Helper()
	cases := []testCase{
		{"one at a time has the lock", oneAtATime},
		{"what is asked and done about a lock is right", everyQuestion},
		{"a waiter is woken by its own kind", wokenByOwn},
		{"a waiter is woken by a peer, however it publishes", wokenByPeers},
		{"many locks are renewed at once", manyRenewed},
		{"a lock that the server forgot is lost with the next renewal", forgotten},
		{"a waiter that gives up leaves nothing", givingUp},
		{"a client that closes leaves no waiter", closing},
	}
	if k.Queues {
		cases = append(cases, testCase{"waiters are served in their order", inOrder})
	}
	if k.Queues && !d.Uncounted {
		cases = append(cases, testCase{"a dead waiter is taken out", deadWaiter})
	}
	for _, c := range cases {
		t.Run(k.Name+": "+c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, suite{Deployment: d, kind: k})
		})
	}
}

// lock makes a lock with a name of its own.
func (s suite) lock(t *testing.T, opts ...redlatch.Option) *rlock.Lock {
	t.Helper()
	return s.kind.New(s.Client(t, opts...), redistest.Key(t))
}

// same makes the same lock on a client of its own.
func (s suite) same(t *testing.T, l *rlock.Lock, opts ...redlatch.Option) *rlock.Lock {
	t.Helper()
	return s.kind.New(s.Client(t, opts...), l.Name())
}

// free holds that nothing of the lock is left on the server, after a while: what is
// cleared up in the background takes its time.
func (s suite) free(t *testing.T, name string) {
	t.Helper()
	assert.Eventually(t, func() bool {
		for _, key := range []string{name, codec.QueueKey(name), codec.TimeoutKey(name)} {
			if s.Do(t, name, "EXISTS", key) != any(int64(0)) {
				return false
			}
		}
		return true
	}, givenBack, 5*time.Millisecond, "%s is left on the server", name)
}

// listening waits until so many wait, and listen: on a plain lock one for each client.
func (s suite) listening(t *testing.T, l *rlock.Lock, n int) {
	t.Helper()
	is := func() bool { return s.listenersOf(t, l.Name()) >= int64(n) }
	if s.kind.Queues {
		is = func() bool {
			seen, err := admin.Inspect(callers.Within(t), l)
			return err == nil && len(seen.Queue) >= n && seen.Queue[n-1].Subscribed
		}
	}
	require.Eventually(t, is, soon, 5*time.Millisecond, "they do not listen")
}

// listenersOf returns how many connections would receive that a plain lock is free.
func (s suite) listenersOf(t *testing.T, name string) int64 {
	t.Helper()
	ask := "NUMSUB"
	if s.Publish[0] == "SPUBLISH" {
		ask = "SHARDNUMSUB"
	}
	pair, _ := s.Do(t, name, "PUBSUB", ask, s.kind.channel(name)).([]any)
	require.Len(t, pair, 2)
	n, isNumber := pair[1].(int64)
	require.True(t, isNumber)
	return n
}

// lockLater waits for the lock on a goroutine of its own.
func lockLater(ctx context.Context, l *rlock.Lock) <-chan callers.Acquired[*rlock.Hold] {
	return callers.Later(func() (*rlock.Hold, error) { return l.Lock(ctx) })
}
