package contest

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// rueidisLock is set as its README says for one server of 7.0.5 or later: a
// majority of one key, and no tracking of its own writes. It waits for an
// invalidation of the key, callers of one process taking turns, and renews its lease
// of 5 s every 2.5 s. An attempt that has no answer after 20 ms, its default, counts
// as failed, and then nothing may be left to wake its caller: a goroutine that stands
// still until the end of a measurement shows as a long wait, not as an error.
var rueidisLock = Contestant{
	Name: "rueidislock", Role: Peer, Waits: true, Renews: true,
	Sends: []string{
		"hello", "client|setinfo", "client|tracking", "client|setname", "client|no-evict", "cluster|slots", "cluster|shards",
		"ping", "evalsha", "eval",
	},
	Open: func(_ context.Context, s Settings) (Locker, error) {
		o := rueidislock.LockerOption{
			ClientOption:   rueidis.ClientOption{InitAddress: []string{s.Addr}},
			KeyMajority:    1,
			NoLoopTracking: true,
		}
		if s.Lease > 0 {
			o.KeyValidity, o.ExtendInterval = s.Lease, s.Lease
		}
		l, err := rueidislock.NewLocker(o)
		if err != nil {
			return nil, err
		}
		return rueidisLocker{l}, nil
	},
}

type rueidisLocker struct{ locker rueidislock.Locker }

func (l rueidisLocker) Key(name string) Key         { return rueidisKey{l.locker, name} }
func (l rueidisLocker) RedisKey(name string) string { return "rueidislock:0:" + name }

// closeGrace is how long Close waits before it disconnects.
const closeGrace = 50 * time.Millisecond

// Close lets releases that run behind the caller's back go out first.
func (l rueidisLocker) Close() error {
	time.Sleep(closeGrace)
	l.locker.Close()
	return nil
}

type rueidisKey struct {
	locker rueidislock.Locker
	name   string
}

func (k rueidisKey) Lock(ctx context.Context) (Held, error) {
	_, cancel, err := k.locker.WithContext(ctx, k.name)
	if err != nil {
		return nil, err
	}
	return rueidisHeld(cancel), nil
}

// rueidisHeld is the cancel function, which returns when the key is deleted.
type rueidisHeld context.CancelFunc

func (h rueidisHeld) Unlock() error {
	h()
	return nil
}
