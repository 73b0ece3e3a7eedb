package contest

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	syncpool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	syncredigo "github.com/go-redsync/redsync/v4/redis/redigo"
	"github.com/gomodule/redigo/redis"
	goredislib "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// peers are the other Go clients.
var peers = []Contestant{
	// A pool keeps three idle connections in redsync's examples; here it keeps as many as there may be,
	// because otherwise most of the time would go into dialing.
	{
		Name: "redsync-redigo", Role: Peer, Waits: true, Sends: []string{"set", "evalsha", "eval"},
		Open: func(_ context.Context, s Settings) (Locker, error) {
			pool := redigoPool(s.Addr)
			return openRedsync(syncredigo.NewPool(pool), s, pool.Close), nil
		},
	},
	// On go-redis, as in redsync's README, with the pool of all.
	{
		Name: "redsync-goredis", Role: Peer, Waits: true,
		Sends: []string{"hello", "client|setinfo", "client|maint_notifications", "set", "evalsha", "eval"},
		Open: func(_ context.Context, s Settings) (Locker, error) {
			client := goRedis(s.Addr)
			return openRedsync(goredis.NewPool(client), s, client.Close), nil
		},
	},
	{
		Name: "redislock", Role: Peer, Waits: true,
		Sends: []string{"hello", "client|setinfo", "client|maint_notifications", "evalsha", "eval"},
		Open:  openRedislock,
	},
	{
		Name: "rueidislock", Role: Peer, Waits: true, Renews: true,
		Sends: []string{
			"hello", "client|setinfo", "client|tracking", "client|setname", "client|no-evict", "cluster|slots",
			"cluster|shards", "ping", "evalsha", "eval",
		},
		Open: openRueidislock,
	},
}

// redissonKinds are Redisson in a JVM of its own, which is kept and warm: see bench/java.
// It has its default settings but for its pools, which are enlarged, 64 connections
// for commands as all others here, and for messages enough for all waiters of a
// fair lock, for which each needs a channel of its own: with the default 50
// connections of 5 channels a queue of 1,000 does not move at all.
var redissonKinds = []Contestant{
	inJVM(Plain), inJVM(Fair), inJVM(ReadWrite), inJVM(Permits), inJVM(Counter),
}

// inJVM returns a kind of lock of Redisson as a contestant. Redisson does not renew permits: they have no
// lease. Each goroutine elsewhere is a thread in
// the JVM, and 10,000 of those would measure the system and not the lock: it is used up to 1,000.
func inJVM(kind Kind) Contestant {
	return Contestant{
		Name: "redisson" + string(kind), Role: Peer, Kind: kind, Java: true, Most: 1000,
		Waits: true, Renews: kind != Permits && kind != Counter,
		Sends: []string{
			"evalsha", "eval", "subscribe", "unsubscribe", "ping", "hello", "client|setname", "client|setinfo",
			"script|load", "role",
		},
	}
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

// openRedsync returns redsync with its defaults: it tries again after a random 50 to 250 ms, and gives up
// after 32 tries. A wait goes on with 32 more tries, as a caller that must have the lock would do. Its
// lease is 8 s and not renewed.
func openRedsync(pool syncpool.Pool, s Settings, end func() error) Locker {
	rs := redsync.New(pool)
	var options []redsync.Option
	if s.Lease > 0 {
		options = append(options, redsync.WithExpiry(s.Lease))
	}
	return Locker{
		Key:      func(name string) Key { return redsyncMutex{rs.NewMutex(name, options...)}.Lock },
		RedisKey: sameKey,
		Close:    end,
	}
}

type redsyncMutex struct{ mutex *redsync.Mutex }

func (m redsyncMutex) Lock(ctx context.Context) (Held, error) {
	for {
		err := m.mutex.LockContext(ctx)
		if err == nil {
			return m, nil
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

func (m redsyncMutex) Unlock() error {
	ok, err := m.mutex.Unlock()
	if err == nil && !ok {
		err = redsync.ErrFailed
	}
	return err
}

// openRedislock returns bsm/redislock, which waits as in its example of a retry: it tries again every
// 100 ms. Its lease has no default and is not renewed: it is 30 s, as Redlatch's. A context without a
// deadline ends its wait after one lease, so a wait goes on until the caller's context ends.
func openRedislock(_ context.Context, s Settings) (Locker, error) {
	rdb := goRedis(s.Addr)
	client, ttl := redislock.New(rdb), cmp.Or(s.Lease, 30*time.Second)
	key := func(name string) Key {
		return func(ctx context.Context) (Held, error) {
			retry := &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)}
			for {
				lock, err := client.Obtain(ctx, name, ttl, retry)
				if err == nil {
					return redislockHeld{lock}, nil
				}
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				if !errors.Is(err, redislock.ErrNotObtained) && !errors.Is(err, context.DeadlineExceeded) {
					return nil, err
				}
			}
		}
	}
	return Locker{Key: key, RedisKey: sameKey, Close: rdb.Close}, nil
}

type redislockHeld struct{ lock *redislock.Lock }

func (h redislockHeld) Unlock() error { return h.lock.Release(context.Background()) }

// closeGrace is how long rueidislock's releases, which run in the background, have before it is closed.
const closeGrace = 50 * time.Millisecond

// openRueidislock returns rueidislock set as its README says for one server of 7.0.5 or later: a
// majority of one key, and no tracking of its own writes. It waits for an
// invalidation of the key, callers of one process taking turns, and renews its lease
// of 5 s every 2.5 s. An attempt that has no answer after 20 ms, its default, counts
// as failed, and then nothing may be left to wake its caller: a goroutine that stands
// still until the end of a measurement shows as a long wait, not as an error.
func openRueidislock(_ context.Context, s Settings) (Locker, error) {
	o := rueidislock.LockerOption{
		ClientOption:   rueidis.ClientOption{InitAddress: []string{s.Addr}},
		KeyMajority:    1,
		NoLoopTracking: true,
	}
	if s.Lease > 0 {
		o.KeyValidity, o.ExtendInterval = s.Lease, s.Lease
	}
	locker, err := rueidislock.NewLocker(o)
	if err != nil {
		return Locker{}, err
	}
	return Locker{
		Key: func(name string) Key {
			return func(ctx context.Context) (Held, error) {
				_, cancel, err := locker.WithContext(ctx, name)
				if err != nil {
					return nil, err
				}
				return rueidisHeld(cancel), nil
			}
		},
		RedisKey: func(name string) string { return "rueidislock:0:" + name },
		Close: func() error {
			time.Sleep(closeGrace)
			locker.Close()
			return nil
		},
	}, nil
}

// rueidisHeld is the cancel function, which returns when the key is deleted.
type rueidisHeld context.CancelFunc

func (h rueidisHeld) Unlock() error {
	h()
	return nil
}
