package contest

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/luasrc"
	"github.com/redlatch/redlatch/transport"
)

// The limits send Redlatch's two scripts with nothing around them: no loss of a reply is
// handled, no lease is renewed, and a refused caller does not wait. The third of them,
// which pipelines, has no goroutine per lock and so is no Locker: see package work.

var rawSends = []string{"evalsha", "eval", "script|load"}

// rawOne sends both scripts on one connection, one caller at a time.
var rawOne = Contestant{
	Name: "raw-one", Role: Limit, Sends: rawSends,
	Open: func(_ context.Context, s Settings) (Locker, error) {
		conn, err := redis.Dial("tcp", s.Addr)
		if err != nil {
			return nil, err
		}
		l := &rawLocker{one: conn}
		return l, l.load()
	},
}

// rawPool sends them on a pool of 64 connections.
var rawPool = Contestant{
	Name: "raw-pool", Role: Limit, Sends: rawSends,
	Open: func(_ context.Context, s Settings) (Locker, error) {
		l := &rawLocker{pool: redigoPool(s.Addr)}
		return l, l.load()
	},
}

// rawPipelined sends them for many locks at once; package work does that.
var rawPipelined = Contestant{Name: "raw-pipelined", Role: Limit, Sends: rawSends}

type rawLocker struct {
	mu   sync.Mutex // one caller at a time on one; that is what is measured
	one  redis.Conn
	pool *redis.Pool
	last atomic.Int64
}

// do runs one command on the connection, or on one of the pool.
func (l *rawLocker) do(cmd string, args ...any) (any, error) {
	if l.pool == nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.one.Do(cmd, args...)
	}
	conn := l.pool.Get()
	defer conn.Close() //nolint:errcheck // back to the pool
	return conn.Do(cmd, args...)
}

func (l *rawLocker) load() error {
	for _, text := range []string{luasrc.Acquire.Text(), luasrc.Release.Text()} {
		if _, err := l.do("SCRIPT", "LOAD", text); err != nil {
			return err
		}
	}
	return nil
}

func (l *rawLocker) RedisKey(name string) string { return name }

func (l *rawLocker) Key(name string) Key {
	owner := "0c2c7e4e-5f53-7c6b-9d3e-2b1f6a7c8d9e:" + strconv.FormatInt(l.last.Add(1), 10)
	return &rawKey{
		locker:  l,
		acquire: AcquireArgs(name, owner),
		release: ReleaseArgs(name, owner),
	}
}

func (l *rawLocker) Close() error {
	if l.pool != nil {
		return l.pool.Close()
	}
	return l.one.Close()
}

// AcquireArgs returns the arguments of the EVALSHA that takes the lock called name.
func AcquireArgs(name, owner string) []any {
	return evalSHA(name, func(l *luasrc.Plain, c *transport.Call) { l.Acquire(c, owner, 30000) })
}

// ReleaseArgs returns the arguments of the EVALSHA that frees it.
func ReleaseArgs(name, owner string) []any {
	return evalSHA(name, func(l *luasrc.Plain, c *transport.Call) { l.Release(c, owner, 30000, 0) })
}

// evalSHA returns the arguments of the EVALSHA of a call for the lock called name.
func evalSHA(name string, fill func(l *luasrc.Plain, c *transport.Call)) []any {
	var c transport.Call
	fill(&luasrc.Plain{Key: name, Channel: codec.LockChannel(name), Publish: "PUBLISH"}, &c)
	return append([]any{c.Script.SHA(), c.NumKeys}, c.Args...)
}

// rawKey is its own Held: nothing is allocated for it.
type rawKey struct {
	locker           *rawLocker
	acquire, release []any
}

func (k *rawKey) Lock(context.Context) (Held, error) {
	if reply, err := k.locker.do("EVALSHA", k.acquire...); err != nil || reply != nil {
		return nil, rawError("the lock is held", err)
	}
	return k, nil
}

func (k *rawKey) Unlock() error {
	if reply, err := k.locker.do("EVALSHA", k.release...); err != nil || reply == nil {
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
