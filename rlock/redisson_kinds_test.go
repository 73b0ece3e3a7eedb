package rlock_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// What Redisson's spin and non-reentrant locks write (docs/protocol.md): the hash of the plain
// lock. A spin lock is freed without a message, a non-reentrant one with that of the plain lock;
// the latter answers its own owner with an error.
const (
	theirsTakes = `if redis.call('EXISTS', KEYS[1]) == 1 then
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 and ARGV[3] == '1' then
return redis.error_reply('NON_REENTRANT_REACQUIRE') end
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return redis.call('PTTL', KEYS[1]) end
end
redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[1])`
	theirsFrees = `if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) == 0 then
redis.call('DEL', KEYS[1])
if ARGV[2] == '1' then redis.call('PUBLISH', KEYS[2], '0') end
end
return 1`
)

func TestSpinAndNonReentrantLocksOfRedissonTakeTurnsWithOurs(t *testing.T) {
	t.Parallel()
	for kind, nonReentrant := range map[string]string{"spin": "0", "non-reentrant": "1"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			srv, client := onShared(t, noPoll())
			l := rlock.New(client, redistest.Key(t))
			takes := func() any {
				return srv.Do(t, "EVAL", theirsTakes, 1, l.Name(), 60_000, foreignOwner, nonReentrant)
			}
			ours := take(t, l)
			require.Positive(t, takes(), "it is told how long ours lasts")
			require.NoError(t, ours.Unlock())
			require.Nil(t, takes())

			_, err := l.TryLock(t.Context())
			checkHeld(t, err)
			w := await(t.Context(), l, rlock.WithPollCap(50*time.Millisecond))
			listening(t, srv, codec.LockChannel(l.Name()))
			srv.Do(t, "EVAL", theirsFrees, 2, l.Name(), codec.LockChannel(l.Name()), foreignOwner, nonReentrant)
			hold := w.acquired(t, soon)
			inner, err := l.Lock(hold.Context(t.Context()))
			require.NoError(t, err, "ours is entered again, with its proof")
			require.NoError(t, inner.Unlock())
			require.NoError(t, hold.Unlock())
		})
	}
}
