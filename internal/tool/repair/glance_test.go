package repair

import (
	"context"
	"net"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

// The live page tells one whose request has ended from one that has failed.
func TestALookThatIsGivenUpSaysSo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	ours, theirs := net.Pipe()
	defer func() { _ = theirs.Close() }()
	go func() {
		_, _ = theirs.Read(make([]byte, 1024)) // and no answer
		cancel()
	}()
	e := Evict{Name: "job", Owner: "a:1", Absent: AbsentFor}
	e.Dial = func(context.Context) (redis.Conn, error) { return redis.NewConn(ours, 0, 0), nil }
	_, err := e.Run(ctx)
	require.ErrorIs(t, err, context.Canceled)
}
