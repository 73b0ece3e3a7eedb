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

var peers = []Contestant{
	// redsync's examples keep three idle connections, so that most of the time would be spent dialing.
	{
		Name: "redsync-redigo", Role: Peer, Waits: true, Sends: []string{"set", "evalsha", "eval"},
		Open: func(_ context.Context, s Settings) (Locker, error) {
			pool := redigoPool(s.Addr)
			return openRedsync(syncredigo.NewPool(pool), s, pool.Close), nil
		},
	},
	// This follows redsync's README, with the pool size that all contestants have.
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

// redissonKinds run Redisson in a warm JVM, with enough subscription connections to give each
// waiter for a fair lock its own channel.
var redissonKinds = []Contestant{
	inJVM(Plain), inJVM(Fair), inJVM(ReadWrite), inJVM(Permits), inJVM(Counter),
}

// The JVM uses a thread where the other clients use a goroutine, so the limit is 1,000.
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

func redigoPool(addr string) *redis.Pool {
	return &redis.Pool{
		MaxIdle: PoolSize, MaxActive: PoolSize, Wait: true,
		Dial: func() (redis.Conn, error) { return redis.Dial("tcp", addr) },
	}
}

// By default, go-redis waits only a few seconds for a pooled connection.
func goRedis(addr string) *goredislib.Client {
	return goredislib.NewClient(&goredislib.Options{
		Addr: addr, PoolSize: PoolSize, PoolTimeout: time.Minute, ContextTimeoutEnabled: true,
	})
}

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

// openRedislock follows redislock's example, with Redlatch's default lease. Unless ctx has a deadline, Obtain returns
// after one lease and is called again.
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

const closeGrace = 50 * time.Millisecond

// openRueidislock follows rueidislock's README. If an attempt gets no reply within 20 ms, the
// default, its caller may stay blocked, which shows up as a long wait.
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

// rueidisHeld is the cancel function of a lock. It returns after the key has been deleted.
type rueidisHeld context.CancelFunc

func (h rueidisHeld) Unlock() error {
	h()
	return nil
}
