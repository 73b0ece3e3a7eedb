package redlatch_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/embedded"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/rlock"
)

// rotating is a server that rotates its user's password, and a client that receives each new password. The client
// holds one lock and waits for another.
type rotating struct {
	*redistest.Server
	client *redlatch.Client
	tokens tokens
	log    *redistest.Journal
	hold   *rlock.Hold
	ctx    context.Context // the hold's
	waited chan error
	theirs *rlock.Hold // another client's, which the client waits for

	renewals atomic.Int64 // successful ones
}

func newRotating(t *testing.T, lease time.Duration) *rotating {
	t.Helper()
	r := &rotating{Server: redistest.Start(t), waited: make(chan error, 1)}
	r.rotate(t, "first")
	r.tokens.set("first")
	log, logger := redistest.NewJournal()
	r.log = log
	stale := strings.Replace(r.URL(), "redis://", "redis://nobody:stale@", 1) // is not used
	observer := redlatch.Observer{Renewed: func(e redlatch.Renewed) {
		if e.Err == nil {
			r.renewals.Add(1)
		}
	}}
	c := dialled(t, stale, redlatch.WithCredentials(r.tokens.get), redlatch.WithWatchdogTimeout(lease), redlatch.WithLogger(logger),
		redlatch.WithObserver(observer))
	r.client = c
	var err error
	r.hold, err = rlock.New(c, redistest.Key(t)).Lock(t.Context())
	require.NoError(t, err)
	r.ctx = r.hold.Context(t.Context())

	name := redistest.Key(t)
	r.theirs, err = rlock.New(dialled(t, r.URL()), name).Lock(t.Context())
	require.NoError(t, err)
	go func() {
		hold, err := rlock.New(c, name).Lock(t.Context(), rlock.WithWait(time.Minute))
		if err == nil {
			err = hold.Unlock()
		}
		r.waited <- err
	}()
	require.Eventually(t, func() bool { return len(r.Channels(t)) == 1 }, soon, time.Millisecond)
	return r
}

// rotate changes the password on the server, which closes the user's connections.
func (r *rotating) rotate(t *testing.T, password string) {
	t.Helper()
	r.Do(t, "ACL", "SETUSER", "app", "on", "resetpass", ">"+password, "~*", "&*", "+@all")
	r.Do(t, "CLIENT", "KILL", "USER", "app")
}

// finish checks that the waiter acquires its lock, woken by a message or a gap.
func (r *rotating) finish(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		return len(r.Channels(t)) == 1 && r.Channels(t)[0] == codec.LockChannel(r.theirs.Name())
	}, soon, time.Millisecond)
	require.NoError(t, r.theirs.Unlock())
	select {
	case err := <-r.waited:
		require.NoError(t, err)
	case <-time.After(soon):
		require.FailNow(t, "still waiting")
	}
}

func TestPasswordRotationKeepsHoldsAndWaiters(t *testing.T) {
	t.Parallel()
	r := newRotating(t, 30*time.Second)
	for _, password := range []string{"second", "third"} {
		r.tokens.set(password)
		before := r.renewals.Load()
		r.rotate(t, password)
		require.Eventually(t, func() bool { return r.renewals.Load() > before }, soon, time.Millisecond, "a renewal")
		// The second connection must also be open before the password changes again.
		require.Eventually(t, func() bool { return len(r.Channels(t)) == 1 }, soon, time.Millisecond)
	}
	r.finish(t)
	require.NoError(t, r.ctx.Err())
	require.NoError(t, r.hold.Unlock())
	require.Empty(t, r.log.Lines("WRONGPASS"))
}

// A vault may return the old password for a while.
func TestBriefWrongPasswordKeepsHold(t *testing.T) {
	t.Parallel()
	r := newRotating(t, 45*time.Second)
	asked := r.tokens.calls.Load()
	r.rotate(t, "second")
	// The vault returns the old password while the client retries.
	var err error
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		// An early call may be sent before the client notices the closed connection.
		_, err = rlock.New(r.client, "any").IsLocked(ctx)
		return err != nil && strings.Contains(err.Error(), "WRONGPASS") && r.tokens.calls.Load()-asked > 1
	}, soon, time.Millisecond, "it retries")
	require.ErrorIs(t, err, redlatch.ErrNotSent)
	require.NoError(t, r.hold.Err())
	before := r.renewals.Load()
	r.tokens.set("second")
	r.finish(t)
	require.Eventually(t, func() bool { return r.renewals.Load() > before }, soon, time.Millisecond, "a renewal")
	require.NoError(t, r.ctx.Err())
	require.NoError(t, r.hold.Unlock())
	require.Len(t, r.log.Lines("level=WARN msg=\"redlatch: cannot connect\""), 1, "one line for consecutive failures")
}

// Each of the two connections pauses between logins, for half a second to a second in the end.
func TestRejectedLoginsPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv := redistest.Mini(t, embedded.WithInProcess())
		var rejects atomic.Bool
		var logins atomic.Int64
		c, err := redlatch.New(func(ctx context.Context) (redis.Conn, error) {
			time.Sleep(time.Millisecond) // a round trip
			logins.Add(1)
			if rejects.Load() {
				return nil, redis.Error("WRONGPASS invalid username-password pair or user is disabled.")
			}
			return srv.Server.Dial(ctx)
		}, redlatch.WithWatchdogTimeout(time.Minute))
		require.NoError(t, err)
		closedWith(t, c)
		other, err := redlatch.New(srv.Server.Dial)
		require.NoError(t, err)
		closedWith(t, other)
		hold, err := rlock.New(c, "held").Lock(t.Context())
		require.NoError(t, err)
		theirs, err := rlock.New(other, "awaited").Lock(t.Context())
		require.NoError(t, err)
		waited := make(chan error, 1)
		go func() { waited <- rlock.New(c, "awaited").Do(t.Context(), func(context.Context) error { return nil }) }()
		time.Sleep(time.Second)
		require.Equal(t, int64(2), logins.Load())

		rejects.Store(true)
		srv.DropConnections()
		synctest.Wait()
		for until := time.Now().Add(10 * time.Second); time.Now().Before(until); {
			_, err := rlock.New(c, "other").IsLocked(t.Context())
			require.ErrorIs(t, err, redlatch.ErrNotSent)
			require.ErrorContains(t, err, "WRONGPASS")
		}
		require.Greater(t, logins.Load(), int64(2+2*10), "it retries")
		require.Less(t, logins.Load(), int64(2+2*30), "but not in a tight loop")

		rejects.Store(false)
		require.NoError(t, theirs.Unlock())
		require.NoError(t, <-waited)
		require.NoError(t, hold.Unlock())
	})
}
