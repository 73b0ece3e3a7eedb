package badinput_test

import (
	"context"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/admin"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/limits"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/leader"
	"github.com/redlatch/redlatch/pubsub"
	"github.com/redlatch/redlatch/redlatchui"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rfencedlock"
	"github.com/redlatch/redlatch/rlatch"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/rmultilock"
	"github.com/redlatch/redlatch/rreadwritelock"
	"github.com/redlatch/redlatch/rsemaphore"
	"github.com/redlatch/redlatch/transport"
)

// world is a server and a client in a bubble.
type world struct {
	t      *testing.T
	srv    *redistest.MiniServer
	client *redlatch.Client
	locks  int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, srv: redistest.Mini(t, embedded.WithInProcess())}
	w.client = w.newClient()
	return w
}

// newClient returns a client that the call may close.
func (w *world) newClient() *redlatch.Client {
	w.t.Helper()
	c, err := redlatch.New(w.srv.Server.Dial)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { require.NoError(w.t, c.Close()) })
	return c
}

// patience is the timeout of a call's context.
const patience = 30 * time.Second

func (w *world) bounded() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	return ctx
}

func (w *world) ended() context.Context {
	ctx, cancel := context.WithCancel(w.t.Context())
	cancel()
	return ctx
}

// name returns a name that has not been used.
func (w *world) name() string {
	w.locks++
	return "lock-" + string(rune('a'+w.locks%26)) + time.Duration(w.locks).String()
}

func (w *world) hold() any {
	return released[*rlock.Hold](w)(rlock.New(w.client, w.name()).TryLock(w.t.Context()))
}

// released unlocks h when the test ends.
func released[H interface{ Unlock() error }](w *world) func(h H, err error) any {
	return func(h H, err error) any {
		require.NoError(w.t, err)
		w.t.Cleanup(func() { _ = h.Unlock() })
		return h
	}
}

// spent unlocks acquired holds.
func spent[H interface{ Unlock() error }](w *world) func(h H, err error) {
	return func(h H, err error) {
		if w.sane(err) {
			w.sane(h.Unlock())
		}
	}
}

func (w *world) semaphore() *rsemaphore.Expirable {
	w.t.Helper()
	s := rsemaphore.NewExpirable(w.client, w.name())
	require.NoError(w.t, s.SetPermits(w.t.Context(), 3))
	return s
}

// receivers returns values for the types that have methods. The first value of each type is valid.
func receivers() map[reflect.Type][]value {
	locks := []value{
		{what: "lock", make: func(w *world) any { return rlock.New(w.client, w.name()) }},
		{what: "fair lock", make: func(w *world) any { return rfairlock.New(w.client, w.name()) }},
		mistake[*rlock.Lock]("nil lock", nilDeref),
	}
	for _, name := range texts {
		locks = append(locks,
			value{what: "lock " + limits.Quote(name), make: func(w *world) any { return rlock.New(w.client, name) }},
			value{what: "fair lock " + limits.Quote(name), make: func(w *world) any { return rfairlock.New(w.client, name) }})
	}
	all := map[reflect.Type][]value{
		typeOf[*rlock.Lock](): locks,
		typeOf[*redlatch.Client](): {
			{what: "client", make: func(w *world) any { return w.newClient() }},
			{what: "closed client", make: func(w *world) any {
				c := w.newClient()
				require.NoError(w.t, c.Close())
				return c
			}},
		},
		typeOf[*rlock.Hold](): {
			{what: "hold", make: func(w *world) any { return w.hold() }},
			{what: "released hold", make: func(w *world) any {
				h := w.hold()
				w.use(h)
				return h
			}},
		},
		typeOf[*rfencedlock.Lock](): {
			{what: "fenced lock", make: func(w *world) any { return rfencedlock.New(w.client, w.name()) }},
			{what: "fair fenced lock", make: func(w *world) any {
				return rfencedlock.NewFair(w.client, w.name(), rfencedlock.WithEpoch(1))
			}},
			{what: "fenced lock of no epoch", make: func(w *world) any {
				return rfencedlock.New(w.client, w.name(), rfencedlock.WithEpoch(-1))
			}},
		},
		typeOf[*rfencedlock.Hold](): {
			{what: "fenced hold", make: func(w *world) any {
				return released[*rfencedlock.Hold](w)(rfencedlock.New(w.client, w.name()).TryLock(w.t.Context()))
			}},
		},
		typeOf[*rreadwritelock.Lock](): {
			{what: "read/write lock", make: func(w *world) any { return rreadwritelock.New(w.client, w.name(), nil) }},
		},
		// An unexported interface.
		reflect.TypeOf(admin.Inspect).In(1): locks,
		typeOf[*redlatch.LockError](): vals(
			&redlatch.LockError{Op: "lock", Err: redlatch.ErrLost}, &redlatch.LockError{},
			&redlatch.LockError{Name: texts[len(texts)-1], TTL: durations[len(durations)-1], Err: redlatch.ErrLost},
			&redlatch.LockError{Name: texts[len(texts)-2], TTL: durations[len(durations)-2], Err: redlatch.ErrLost}),
		typeOf[redlatch.Loss]():        vals(redlatch.LossTaken, redlatch.Loss("")),
		typeOf[reply.Beat]():           vals(reply.Beat{}),
		typeOf[reply.ReleaseOutcome](): vals[reply.ReleaseOutcome](0, 255),
		typeOf[*codec.Owner]():         {{what: "owner", make: func(*world) any { return &codec.Owner{} }}},
		typeOf[*transport.Call]():      {{what: "call", make: func(*world) any { return &transport.Call{NumKeys: -1} }}},
		typeOf[*transport.Script]():    vals(transport.NewScript("", "")),
		typeOf[*transport.ServerError](): vals(&transport.ServerError{}, &transport.ServerError{Text: texts[len(texts)-1]},
			&transport.ServerError{Text: "ERR \r\n\x00"}),
		typeOf[*pubsub.Subscriber](): {{what: "subscriber", make: func(w *world) any {
			s := pubsub.New(pubsub.Config{Dial: w.srv.Server.Dial})
			w.t.Cleanup(func() { require.NoError(w.t, s.Close()) })
			return s
		}}},
		typeOf[*embedded.Server](): {{what: "server", make: func(w *world) any {
			return redistest.Mini(w.t, embedded.WithInProcess()).Server
		}}},
	}
	maps.Copy(all, familyReceivers())
	for of := range all {
		if of.Kind() == reflect.Pointer {
			all[of] = append(all[of], value{what: "nil", make: func(*world) any { return reflect.Zero(of).Interface() },
				panics: "nil Client|" + nilDeref})
		}
	}
	return all
}

func leads(context.Context) error { return nil }

func familyReceivers() map[reflect.Type][]value {
	return map[reflect.Type][]value{
		typeOf[*rsemaphore.Expirable](): {
			{what: "semaphore", make: func(w *world) any { return w.semaphore() }},
			{what: "semaphore that was never set", make: func(w *world) any { return rsemaphore.NewExpirable(w.client, w.name()) }},
			{what: "semaphore without a name", make: func(w *world) any { return rsemaphore.NewExpirable(w.client, "") }},
		},
		typeOf[*rsemaphore.Hold](): {
			{what: "hold of permits", make: func(w *world) any {
				h, err := w.semaphore().TryAcquire(w.t.Context(), 2)
				require.NoError(w.t, err)
				w.t.Cleanup(func() { _ = h.Release() })
				return h
			}},
		},
		typeOf[*rsemaphore.Semaphore](): {
			{what: "counter", make: func(w *world) any {
				s := rsemaphore.New(w.client, w.name())
				require.NoError(w.t, s.AddPermits(w.t.Context(), 2))
				return s
			}},
			{what: "counter without a name", make: func(w *world) any { return rsemaphore.New(w.client, "") }},
		},
		typeOf[*rlatch.Latch](): {
			{what: "latch", make: func(w *world) any { return rlatch.New(w.client, w.name()) }},
			{what: "closed latch", make: func(w *world) any {
				l := rlatch.New(w.client, w.name())
				_, err := l.TrySetCount(w.bounded(), 2)
				require.NoError(w.t, err)
				return l
			}},
		},
		typeOf[leader.Config](): vals(leader.Config{Lead: leads}, leader.Config{}, leader.Config{Lead: leads, Pause: -1},
			leader.Config{Lead: leads, Pause: durations[len(durations)-1]}),
		typeOf[redlatchui.Options](): pageOptions,
		typeOf[*redlatchui.Page]():   pages,
		typeOf[*leader.Status](): {
			{what: "status", make: func(*world) any { return &leader.Status{} }},
		},
		typeOf[rmultilock.Member](): {
			{what: "member", make: func(w *world) any { return rlock.New(w.client, w.name()) }},
			{what: "fair member", make: func(w *world) any { return rfairlock.New(w.client, w.name()) }},
			{what: "member without a name", make: func(w *world) any { return rlock.New(w.client, "") }},
			mistake[rmultilock.Member]("no member", nilDeref),
		},
		typeOf[*rmultilock.Lock](): {
			{what: "two locks", make: func(w *world) any { return rmultilock.New(w.client, w.name(), w.name()) }},
			{what: "locks of two kinds", make: func(w *world) any {
				return rmultilock.Of(rfairlock.New(w.client, w.name()), rlock.New(w.client, w.name()))
			}},
			{what: "no locks", make: func(w *world) any { return rmultilock.New(w.client) }},
		},
		typeOf[*rmultilock.Hold](): {
			{what: "hold of two locks", make: func(w *world) any {
				return released[*rmultilock.Hold](w)(rmultilock.New(w.client, w.name(), w.name()).TryLock(w.t.Context()))
			}},
		},
	}
}

// use uses a result as a caller would, and cleans up afterwards. Leases may have expired by then.
func (w *world) use(result any) {
	if r := reflect.ValueOf(result); !r.IsValid() || r.Kind() == reflect.Pointer && r.IsNil() {
		return
	}
	switch r := result.(type) {
	case interface{ Unlock() error }:
		_ = r.Unlock()
	case *rsemaphore.Hold:
		_ = r.Release()
	case *redlatch.Client:
		w.lockAndClose(r)
	case redlatch.Option:
		if c, err := redlatch.New(w.srv.Server.Dial, r); w.sane(err) {
			w.lockAndClose(c)
		}
	case rlock.Option:
		w.lockWith(r)
	case rreadwritelock.Option:
		w.use(rreadwritelock.New(w.client, w.name(), r, nil))
	case rfencedlock.Option:
		w.use(rfencedlock.New(w.client, w.name(), r, nil))
	case *rreadwritelock.Lock:
		spent[*rlock.Hold](w)(r.Read().TryLock(w.bounded()))
		spent[*rlock.Hold](w)(r.Write().TryLock(w.bounded()))
	case *rmultilock.Lock:
		spent[*rmultilock.Hold](w)(r.TryLock(w.bounded()))
	case *rfencedlock.Lock:
		spent[*rfencedlock.Hold](w)(r.TryLock(w.bounded()))
	case *rsemaphore.Expirable:
		_, err := r.Available(w.bounded())
		w.sane(err)
	case *rlatch.Latch:
		if set, err := r.TrySetCount(w.bounded(), 1); w.sane(err) && set {
			w.sane(r.CountDown(w.bounded()))
		}
	case embedded.Option:
		if s, err := embedded.Start(r, nil); w.sane(err) {
			s.Close()
		}
	case *embedded.Server:
		r.Close()
	case *pubsub.Subscriber:
		if sub, err := r.Subscribe(w.bounded(), "channel"); w.sane(err) {
			sub.Close()
		}
		require.NoError(w.t, r.Close())
	case transport.Subscription:
		r.Close()
	case *rlock.Lock:
		_, err := admin.Inspect(w.bounded(), r)
		w.sane(err)
	}
}

func (w *world) lockAndClose(c *redlatch.Client) {
	for _, l := range []*rlock.Lock{rlock.New(c, w.name()), rfairlock.New(c, w.name())} {
		spent[*rlock.Hold](w)(l.Lock(w.bounded()))
	}
	require.NoError(w.t, c.Close())
}

func (w *world) lockWith(o rlock.Option) {
	for _, l := range []*rlock.Lock{rlock.New(w.client, w.name()), rfairlock.New(w.client, w.name())} {
		spent[*rlock.Hold](w)(l.TryLock(w.bounded(), nil, o))
		spent[*rlock.Hold](w)(l.Lock(w.bounded(), nil, o))
		_, err := l.Resume(w.bounded(), codec.NewOwner(w.client.ID(), 1), o)
		w.sane(err)
	}
	if h, err := w.semaphore().Acquire(w.bounded(), 1, nil, o); w.sane(err) {
		w.sane(h.Release())
	}
}
