package replication

import (
	"context"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// A server that has no room for a connection answers the first command so, runs none, and hangs up.
func TestAServerWithoutRoomHasRunNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, isFull := serving(), true
		b := opened(t, func(ctx context.Context) (redis.Conn, error) {
			if !isFull {
				return p.dial(ctx)
			}
			ours, theirs := net.Pipe()
			go func() {
				go func() { _, _ = io.Copy(io.Discard, theirs) }()
				_, _ = io.WriteString(theirs, "-ERR max number of clients reached\r\n")
				_ = theirs.Close()
			}()
			return redis.NewConn(ours, 0, 0), nil
		})
		for _, came := range together(b, time.Second, set("a"), eval("b")) {
			o := await(t, came)
			require.ErrorIs(t, o.err, transport.ErrNotSent)
			require.NotErrorIs(t, o.err, transport.ErrUncertain)
			require.ErrorContains(t, o.err, "max number of clients")
		}
		isFull = false
		has(t, b, set("a"), time.Second, 1)
		p.cut() // what was sent on this one may have run
		isFull = true
		o := await(t, start(b, set("b"), time.Second))
		require.ErrorIs(t, o.err, transport.ErrUncertain)
		require.NotErrorIs(t, o.err, transport.ErrNotSent)
	})
}
