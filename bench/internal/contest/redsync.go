package contest

import (
	"context"
	"errors"
	"time"

	"github.com/go-redsync/redsync/v4"
	syncpool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	syncredigo "github.com/go-redsync/redsync/v4/redis/redigo"
	"github.com/gomodule/redigo/redis"
	goredislib "github.com/redis/go-redis/v9"
)

// redsync waits by asking again after a random 50 to 250 ms, and gives up after 32 tries:
// its defaults, which are kept. A wait goes on with 32 more tries, as a caller that must
// have the lock would do. Its lease is 8 s and not renewed.
var redsyncSends = []string{"set", "evalsha", "eval"}

// redsyncRedigo is redsync on a redigo pool. A pool keeps three idle connections in
// redsync's examples; here it keeps as many as there may be, because otherwise most
// of the time would go into dialling.
var redsyncRedigo = Contestant{
	Name: "redsync-redigo", Role: Peer, Waits: true, Sends: redsyncSends,
	Open: func(_ context.Context, s Settings) (Locker, error) {
		pool := redigoPool(s.Addr)
		return newRedsync(syncredigo.NewPool(pool), s, pool.Close), nil
	},
}

// redsyncGoRedis is redsync on go-redis, as in its README, with the pool of all.
var redsyncGoRedis = Contestant{
	Name: "redsync-goredis", Role: Peer, Waits: true,
	Sends: append([]string{"hello", "client|setinfo", "client|maint_notifications"}, redsyncSends...),
	Open: func(_ context.Context, s Settings) (Locker, error) {
		client := goRedis(s.Addr)
		return newRedsync(goredis.NewPool(client), s, client.Close), nil
	},
}

// redigoPool returns a pool in which callers wait for one of PoolSize connections.
func redigoPool(addr string) *redis.Pool {
	return &redis.Pool{
		MaxIdle: PoolSize, MaxActive: PoolSize, Wait: true,
		Dial: func() (redis.Conn, error) { return redis.Dial("tcp", addr) },
	}
}

// goRedis returns a client with PoolSize connections. Its own defaults are ten for
// each processor, and timeouts of seconds for a connection out of the pool, which
// thousands of callers reach on a small machine: they wait for longer here.
func goRedis(addr string) *goredislib.Client {
	return goredislib.NewClient(&goredislib.Options{
		Addr: addr, PoolSize: PoolSize, PoolTimeout: time.Minute, ContextTimeoutEnabled: true,
	})
}

type redsyncLocker struct {
	sync    *redsync.Redsync
	options []redsync.Option
	close   func() error
}

func newRedsync(pool syncpool.Pool, s Settings, end func() error) Locker {
	l := &redsyncLocker{sync: redsync.New(pool), close: end}
	if s.Lease > 0 {
		l.options = append(l.options, redsync.WithExpiry(s.Lease))
	}
	return l
}

func (l *redsyncLocker) Key(name string) Key {
	return redsyncKey{l.sync.NewMutex(name, l.options...)}
}

func (l *redsyncLocker) RedisKey(name string) string { return name }

func (l *redsyncLocker) Close() error { return l.close() }

type redsyncKey struct{ mutex *redsync.Mutex }

func (k redsyncKey) Lock(ctx context.Context) (Held, error) {
	for {
		err := k.mutex.LockContext(ctx)
		if err == nil {
			return redsyncHeld(k), nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		var taken *redsync.ErrTaken
		if !errors.Is(err, redsync.ErrFailed) && !errors.As(err, &taken) {
			return nil, err
		}
	}
}

type redsyncHeld struct{ mutex *redsync.Mutex }

func (h redsyncHeld) Unlock() error {
	ok, err := h.mutex.Unlock()
	if err == nil && !ok {
		err = redsync.ErrFailed
	}
	return err
}
