package contest

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// limits are upper bounds: they send only Redlatch's two scripts, and do not handle lost replies,
// renew leases or wait.
var limits = []Contestant{
	{Name: "raw-pool", Role: Limit, Sends: rawSends, Open: func(_ context.Context, s Settings) (Locker, error) {
		pool := redigoPool(s.Addr)
		return openRaw(func(cmd string, args ...any) (any, error) {
			conn := pool.Get()
			defer conn.Close() //nolint:errcheck // returns the connection to the pool
			return conn.Do(cmd, args...)
		}, pool.Close)
	}},
	{Name: "raw-pipelined", Role: Limit, Sends: rawSends},
}

var rawSends = []string{"evalsha", "eval", "script|load"}

type doer func(cmd string, args ...any) (any, error)

func openRaw(do doer, end func() error) (Locker, error) {
	for _, text := range []string{luasrc.Acquire.Text(), luasrc.Release.Text()} {
		if _, err := do("SCRIPT", "LOAD", text); err != nil {
			return Locker{}, errors.Join(err, end())
		}
	}
	var last atomic.Int64
	return Locker{
		Key: func(name string) Key {
			owner := "0c2c7e4e-5f53-7c6b-9d3e-2b1f6a7c8d9e:" + strconv.FormatInt(last.Add(1), 10)
			return (&rawKey{do: do, acquire: AcquireArgs(name, owner), release: ReleaseArgs(name, owner)}).Lock
		},
		RedisKey: sameKey,
		Close:    end,
	}, nil
}

// AcquireArgs returns the arguments of an EVALSHA that acquires a lock.
func AcquireArgs(name, owner string) []any {
	return evalSHA(name, func(l *luasrc.Plain, c *transport.Call) { l.Acquire(c, owner, 30000) })
}

// ReleaseArgs returns the arguments of an EVALSHA that releases a lock.
func ReleaseArgs(name, owner string) []any {
	return evalSHA(name, func(l *luasrc.Plain, c *transport.Call) { l.Release(c, owner, 30000, 0) })
}

func evalSHA(name string, fill func(l *luasrc.Plain, c *transport.Call)) []any {
	var c transport.Call
	fill(&luasrc.Plain{Key: name, Channel: codec.LockChannel(name), Publish: "PUBLISH"}, &c)
	return append([]any{c.Script.SHA(), c.NumKeys}, c.Args...)
}

type rawKey struct {
	do               doer
	acquire, release []any
}

func (k *rawKey) Lock(context.Context) (Held, error) {
	if reply, err := k.do("EVALSHA", k.acquire...); err != nil || reply != nil {
		return nil, rawError("the lock is held", err)
	}
	return k, nil
}

func (k *rawKey) Unlock() error {
	if reply, err := k.do("EVALSHA", k.release...); err != nil || reply == nil {
		return rawError("the lock is not held", err)
	}
	return nil
}

func rawError(otherwise string, err error) error {
	if err == nil {
		err = redis.Error(otherwise)
	}
	return err
}
