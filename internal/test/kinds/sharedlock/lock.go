// Package sharedlock is a kind of lock for tests that has little in common with the plain lock:
// any number of readers hold it together, or one writer. Holders have ids instead of owners,
// and there is no re-entry.
//
//	lock    sorted set: "r:" or "w:" and an id -> when that hold ends by itself, by the clock of
//	        the server, in milliseconds since 1970
package sharedlock

import (
	"embed"
	"strings"

	"github.com/google/uuid"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/acquire"
	"github.com/redlatch/redlatch/internal/engine"
	"github.com/redlatch/redlatch/internal/hold"
	"github.com/redlatch/redlatch/internal/reply"
	"github.com/redlatch/redlatch/internal/watchdog"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// Reader returns the lock called name in the role of a reader.
func Reader(client *redlatch.Client, name string) *rlock.Lock { return newLock(client, name, "r") }

// Writer returns the lock called name in the role of a writer.
func Writer(client *redlatch.Client, name string) *rlock.Lock { return newLock(client, name, "w") }

func newLock(client *redlatch.Client, name, role string) *rlock.Lock {
	l := &rlock.Lock{}
	*l.Internal() = hold.NewLock(engine.EngineOf(client), name, func(e *engine.Engine, mapped string) (hold.Kind, acquire.Strategy) {
		return &kind{mapped, role, codec.LockChannel(mapped), e.Publish()}, alone{}
	})
	return l
}

// alone is the strategy: each caller asks Redis, since several can hold the lock.
type alone struct{}

func (alone) Waiter(*acquire.Acquisition) acquire.Waiter { return acquire.Alone() }

// kind is what is asked of the server, for one role.
type kind struct {
	key, role, channel string
	publish            any
}

var _ interface {
	hold.Kind
	hold.Identifying
	hold.Inspectable
} = (*kind)(nil)

//go:embed *.lua
var files embed.FS

func load(name string) *transport.Script {
	text, err := files.ReadFile(name + ".lua")
	if err != nil {
		panic(err)
	}
	return transport.NewScript("shared_"+name, string(text))
}

var acquireScript, releaseScript, renewScript, inspectScript = load("acquire"), load("unlock"), load("renew"), load("inspect")

func (k *kind) Name() string       { return "shared " + k.role }
func (k *kind) Family() string     { return "shared" }
func (k *kind) Key() string        { return k.key }
func (k *kind) Channel(any) string { return k.channel }
func (k *kind) NewID() string      { return k.role + ":" + uuid.NewString() }

// Acquire is part of acquire.Waitable.
func (k *kind) Acquire(c *transport.Call, r *acquire.Request) {
	c.Script, c.NumKeys = acquireScript, 1
	c.Args = append(c.Args, k.key, r.Owner, r.Lease)
}

// Decode is part of acquire.Waitable.
func (k *kind) Decode(answer any) (acquire.Outcome, error) {
	granted, ttl, err := reply.Acquired(answer)
	return acquire.Outcome{Granted: granted, TTL: ttl}, err
}

// Release is part of hold.Kind.
func (k *kind) Release(c *transport.Call, r *acquire.Request) {
	c.Script, c.NumKeys = releaseScript, 1
	c.Args = append(c.Args, k.key, r.Owner, k.publish, k.channel, codec.MessageUnlock)
}

// Released is part of hold.Kind.
func (k *kind) Released(answer any) (reply.ReleaseOutcome, error) { return reply.Released(answer) }

// renewal renews holds of both roles.
var renewal = watchdog.Renewal{Fill: fillRenewal, Renewed: reply.RenewedAt}

// Renewal is part of hold.Kind.
func (k *kind) Renewal() *watchdog.Renewal { return &renewal }

func fillRenewal(c *transport.Call, n int, lease func(i int) (key, owner, ttl any)) {
	c.Script, c.NumKeys = renewScript, n
	var args []any
	for i := range n {
		key, owner, ttl := lease(i)
		c.Args, args = append(c.Args, key), append(args, owner, ttl)
	}
	c.Args = append(c.Args, args...)
}

// Inspect is part of hold.Inspectable.
func (k *kind) Inspect(c *transport.Call, _, _ int64) {
	c.Script, c.NumKeys = inspectScript, 1
	c.Args = append(c.Args, k.key)
}

// Inspected is part of hold.Inspectable.
func (k *kind) Inspected(answer any) (reply.Inspection, error) {
	parts, ok := answer.([]any)
	if !ok || len(parts) < 1 {
		return reply.Inspection{}, transport.ErrBadReply
	}
	left, err := reply.Millis(parts[0])
	in := reply.Inspection{Left: left}
	for _, part := range parts[1:] {
		id, isText := part.([]byte)
		if !isText || !strings.Contains(string(id), ":") {
			return in, transport.ErrBadReply
		}
		in.Held = append(in.Held, reply.Held{Owner: string(id), Count: 1, Text: "1"})
	}
	return in, err
}
