// Package locksuite tests all kinds of locks on any transport and deployment. The cases of the suite run in parallel on
// one deployment, so they must not break it. Tests that break the deployment use [Contenders].
package locksuite

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/protocol"
	"github.com/redlatch/redlatch/internal/test/callers"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/transport"
)

const (
	soon     = callers.Soon
	released = 10 * time.Second // limit for a release in the background; leases are longer
)

// Deployment describes the servers on which the suite runs.
type Deployment struct {
	// New returns a transport for one client.
	New func(tb testing.TB) transport.Transport
	// Open, if not nil, is used instead of New.
	Open func(tb testing.TB, opts ...redlatch.Option) *redlatch.Client
	// Do runs a command on the master that serves key.
	Do func(tb testing.TB, key, cmd string, args ...any) any
	// Publish lists the commands with which peers may publish. The transport uses the first one.
	Publish []string
	// Uncounted is set if the servers cannot count subscribers, so dead waiters stay until their deadlines.
	Uncounted bool
}

// OnServer is a deployment with one master.
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
	Name      string
	Queues    bool // whether waiters are queued on the server
	New       func(c *redlatch.Client, name string) *rlock.Lock
	ReadWrite bool
}

func (k Kind) channel(name string) string {
	if k.ReadWrite {
		return protocol.ReadWriteChannel(name)
	}
	return codec.LockChannel(name)
}

// Kinds are the kinds of locks for [Run].
var Kinds = []Kind{{Name: "plain", New: rlock.New}, {Name: "fair", Queues: true, New: rfairlock.New}}

// Fenced are the kinds of locks that have fencing tokens.
var Fenced = []Kind{
	{Name: "fenced", New: withoutTokens(rfencedlock.New)}, {Name: "fair-fenced", Queues: true, New: withoutTokens(rfencedlock.NewFair)},
}

// Writer is a write lock.
var Writer = Kind{Name: "write", ReadWrite: true, New: func(c *redlatch.Client, name string) *rlock.Lock {
	return rreadwritelock.New(c, name).Write()
}}

// Reader is a read lock.
var Reader = Kind{Name: "read", ReadWrite: true, New: func(c *redlatch.Client, name string) *rlock.Lock {
	return rreadwritelock.New(c, name).Read()
}}

func withoutTokens(
	make func(c *redlatch.Client, name string, opts ...rfencedlock.Option) *rfencedlock.Lock,
) func(c *redlatch.Client, name string) *rlock.Lock {
	return func(c *redlatch.Client, name string) *rlock.Lock {
		l := &rlock.Lock{}
		*hold.Of(l) = *hold.Of(make(c, name))
		return l
	}
}

// Client opens a client with its own transport. It is closed when the test ends.
func (d Deployment) Client(tb testing.TB, opts ...redlatch.Option) *redlatch.Client {
	tb.Helper()
	c := d.opened(tb, opts...)
	tb.Cleanup(func() { assert.NoError(tb, c.Close()) })
	return c
}

func (d Deployment) opened(tb testing.TB, opts ...redlatch.Option) *redlatch.Client {
	tb.Helper()
	if d.Open != nil {
		return d.Open(tb, opts...)
	}
	c, err := redlatch.NewWithTransport(d.New(tb), opts...)
	require.NoError(tb, err)
	return c
}

type suite struct {
	Deployment
	kind Kind
}

// timed lists the cases that wait for renewals and heartbeats.
var timed = []string{"many locks are renewed", "a deleted lock is lost at the next renewal", "a dead waiter is evicted"}

// Run runs all cases for [Kinds].
func Run(t *testing.T, d Deployment) {
	t.Helper()
	for _, k := range Kinds {
		for name, run := range cases(k, d) {
			t.Run(k.Name+": "+name, func(t *testing.T) {
				if slices.Contains(timed, name) {
					testlevel.All(t, "seconds of real time")
				}
				t.Parallel()
				run(t, suite{Deployment: d, kind: k})
			})
		}
	}
}

// RunInMemory runs all cases for one kind on in-memory servers with fake time.
func RunInMemory(t *testing.T, k Kind) {
	t.Helper()
	d := Deployment{Uncounted: true}
	for name, run := range cases(k, d) {
		t.Run(k.Name+": "+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := redistest.Mini(t, embedded.WithInProcess())
				d := OnServer(s, nil)
				d.Open = func(tb testing.TB, opts ...redlatch.Option) *redlatch.Client {
					tb.Helper()
					c, err := redlatch.New(s.Server.Dial, opts...)
					require.NoError(tb, err)
					return c
				}
				run(t, suite{Deployment: d, kind: k})
			})
		})
	}
}

func cases(k Kind, d Deployment) map[string]func(t *testing.T, s suite) {
	all := map[string]func(t *testing.T, s suite){
		"one owner at a time":                        oneAtATime,
		"every method works":                         everyQuestion,
		"a release notifies a waiter":                wokenByOwn,
		"a release of a peer notifies a waiter":      wokenByPeers,
		"many locks are renewed":                     manyRenewed,
		"a deleted lock is lost at the next renewal": forgotten,
		"a canceled waiter leaves nothing":           givingUp,
		"a closed client leaves no waiter":           closing,
	}
	if k.Queues {
		all["waiters acquire in order"] = inOrder
	}
	if k.Queues && !d.Uncounted {
		all["a dead waiter is evicted"] = deadWaiter
	}
	return all
}

func (s suite) lock(t *testing.T, opts ...redlatch.Option) *rlock.Lock {
	t.Helper()
	return s.kind.New(s.Client(t, opts...), redistest.Key(t))
}

func (s suite) same(t *testing.T, l *rlock.Lock, opts ...redlatch.Option) *rlock.Lock {
	t.Helper()
	return s.kind.New(s.Client(t, opts...), l.Name())
}

func (s suite) free(t *testing.T, name string) {
	t.Helper()
	assert.Eventually(t, func() bool {
		for _, key := range []string{name, codec.QueueKey(name), codec.TimeoutKey(name)} {
			if s.Do(t, name, "EXISTS", key) != any(int64(0)) {
				return false
			}
		}
		return true
	}, released, 5*time.Millisecond, "%s is left on the server", name)
}

func (s suite) listening(t *testing.T, l *rlock.Lock, n int) {
	t.Helper()
	is := func() bool { return s.listenersOf(t, l.Name()) >= int64(n) }
	if s.kind.Queues {
		is = func() bool {
			seen, err := admin.Inspect(callers.Within(t), l)
			return err == nil && len(seen.Queue) >= n && seen.Queue[n-1].Subscribed
		}
	}
	require.Eventually(t, is, soon, 5*time.Millisecond, "no subscriber")
}

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

func lockLater(ctx context.Context, l *rlock.Lock) <-chan callers.Acquired[*rlock.Hold] {
	return callers.Later(func() (*rlock.Hold, error) { return l.Lock(ctx) })
}
