package contest

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	goredislib "github.com/redis/go-redis/v9"
)

// redislockTTL is the lease of bsm/redislock, which has no default of its own: that
// of Redlatch.
const redislockTTL = 30 * time.Second

// bsmRedislock waits as in its example of a retry: it asks again every 100 ms. Its
// lease is not renewed. A context without a deadline ends its wait after one lease,
// so a wait goes on until the caller's context ends.
var bsmRedislock = Contestant{
	Name: "redislock", Role: Peer, Waits: true,
	Sends: []string{"hello", "client|setinfo", "client|maint_notifications", "evalsha", "eval"},
	Open: func(_ context.Context, s Settings) (Locker, error) {
		rdb := goRedis(s.Addr)
		ttl := redislockTTL
		if s.Lease > 0 {
			ttl = s.Lease
		}
		return &redislockLocker{rdb: rdb, client: redislock.New(rdb), ttl: ttl}, nil
	},
}

type redislockLocker struct {
	rdb    *goredislib.Client
	client *redislock.Client
	ttl    time.Duration
}

func (l *redislockLocker) Key(name string) Key         { return redislockKey{l, name} }
func (l *redislockLocker) RedisKey(name string) string { return name }
func (l *redislockLocker) Close() error                { return l.rdb.Close() }

type redislockKey struct {
	*redislockLocker
	name string
}

func (k redislockKey) Lock(ctx context.Context) (Held, error) {
	retry := &redislock.Options{RetryStrategy: redislock.LinearBackoff(100 * time.Millisecond)}
	for {
		lock, err := k.client.Obtain(ctx, k.name, k.ttl, retry)
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

type redislockHeld struct{ lock *redislock.Lock }

func (h redislockHeld) Unlock() error { return h.lock.Release(context.Background()) }
