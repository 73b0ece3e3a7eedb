package badinput_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/codec"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
)

// payloads are messages that another program may publish on a lock's channel.
var payloads = []string{
	"", "0", "1", "-1", "2", "\x00", "\xff\xfe", "unlock", "0\r\n+OK\r\n", "99999999999999999999", strings.Repeat("0", mebibyte), strings.Repeat("\x00", 8*mebibyte),
}

// Whatever is published, a message is a reason to ask and no more: no waiter gets the lock
// while it is held, and all waiters still wake when it is freed.
func TestForeignMessagesGrantNoLock(t *testing.T) {
	t.Parallel()
	for kind, newLock := range map[string]func(*redlatch.Client, string) *rlock.Lock{"plain": rlock.New, "fair": rfairlock.New} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Shared(t)
			holder, waiter := open(t, srv), open(t, srv)
			name := redistest.Key(t)
			hold, err := newLock(holder, name).TryLock(t.Context())
			require.NoError(t, err)
			got := make(chan error, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 2*soon)
			defer cancel()
			go func() {
				next, err := newLock(waiter, name).Lock(ctx)
				if err == nil {
					err = next.Unlock()
				}
				got <- err
			}()
			channel := listened(t, srv, codec.LockChannel(name))
			for range testlevel.Rounds(1, 20) {
				for _, payload := range payloads {
					srv.Do(t, "PUBLISH", channel, payload)
				}
			}
			select {
			case err := <-got:
				require.Fail(t, "a waiter got the lock", "%v", err)
			default:
			}
			require.NoError(t, hold.Err())
			freed := time.Now()
			require.NoError(t, hold.Unlock())
			require.NoError(t, <-got)
			assert.Less(t, time.Since(freed), soon/2)
		})
	}
}

func open(t *testing.T, srv *redistest.Server) *redlatch.Client {
	t.Helper()
	c, err := redlatch.Open(t.Context(), srv.URL(), redlatch.WithPollCap(time.Minute))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	return c
}

// listened returns the channel of the lock, or of its waiter, when it has a listener.
func listened(t *testing.T, srv *redistest.Server, prefix string) string {
	t.Helper()
	for limit := time.Now().Add(soon); ; {
		for _, channel := range srv.Channels(t) {
			if strings.HasPrefix(channel, prefix) {
				return channel
			}
		}
		require.True(t, time.Now().Before(limit), "no listener")
		<-time.After(5 * time.Millisecond)
	}
}
