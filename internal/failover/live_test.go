package failover

import (
	"context"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"
)

type plainConn struct {
	redis.ConnWithTimeout
	closed chan struct{}
}

func (c plainConn) Close() error {
	close(c.closed)
	return nil
}

func newPlainConn() plainConn { return plainConn{closed: make(chan struct{})} }

// noCancel returns a function that must not be called.
func noCancel(t *testing.T) context.CancelCauseFunc {
	t.Helper()
	return func(error) { t.Error("the dial to the master was ended") }
}

func TestSwitchClosesConnectionsAndDialsToFormerMaster(t *testing.T) {
	t.Parallel()
	var l live
	require.False(t, l.leadTo("a:1"), "no connection")
	there, err := l.begin("a:1", 0, noCancel(t))
	require.NoError(t, err)
	require.False(t, l.leadTo("a:1"), "it is being made")
	old := newPlainConn()
	_, err = there.made(old, nil)
	require.NoError(t, err)
	require.True(t, l.leadTo("a:1"))
	require.False(t, l.leadTo("b:1"))

	ctx, cancel := context.WithCancelCause(t.Context())
	under, err := l.begin("a:1", 0, cancel)
	require.NoError(t, err)
	next, err := l.begin("b:1", 0, noCancel(t))
	require.NoError(t, err)
	require.Equal(t, 2, l.cut("b:1"))
	<-old.closed
	require.ErrorIs(t, context.Cause(ctx), errReplaced)
	late := newPlainConn() // that ignored its context
	_, err = under.made(late, nil)
	require.ErrorIs(t, err, errReplaced)
	<-late.closed

	conn, err := next.made(newPlainConn(), nil)
	require.NoError(t, err)
	require.True(t, l.leadTo("b:1"))
	require.Zero(t, l.cut("b:1"))
	require.NoError(t, conn.Close())
	require.False(t, l.leadTo("b:1"))
}

func TestAnswerOlderThanSwitchIsNotDialed(t *testing.T) {
	t.Parallel()
	var l live
	cuts := l.cutsSoFar()
	require.Zero(t, l.cut("b:1"))
	_, err := l.begin("a:1", cuts, noCancel(t))
	require.ErrorIs(t, err, errReplaced)
	_, err = l.begin("b:1", cuts, noCancel(t))
	require.NoError(t, err, "both say the same")
	_, err = l.begin("a:1", l.cutsSoFar(), noCancel(t))
	require.NoError(t, err, "it was queried after the cut")
}

func TestUnusableDialIsNotCounted(t *testing.T) {
	t.Parallel()
	var l live
	failed, err := l.begin("a:1", 0, noCancel(t))
	require.NoError(t, err)
	_, err = failed.made(nil, context.Canceled)
	require.ErrorIs(t, err, context.Canceled)
	useless, err := l.begin("a:1", 0, noCancel(t))
	require.NoError(t, err)
	conn := newPlainConn()
	_, err = useless.made(struct{ redis.Conn }{conn}, nil)
	require.ErrorContains(t, err, "redis.ConnWithTimeout")
	<-conn.closed
	require.Zero(t, l.cut("b:1"))
}

// lateConn is a connection that is made too late.
type lateConn struct {
	redis.ConnWithTimeout
	of   *live
	free bool // nobody held the mutex while it was closed
}

func (c *lateConn) Close() error {
	if c.free = c.of.mu.TryLock(); c.free {
		c.of.mu.Unlock()
	}
	return nil
}

func TestLateConnectionToFormerMasterIsClosedWithoutMutex(t *testing.T) {
	t.Parallel()
	var l live
	dial, err := l.begin("a:1", 0, func(error) {})
	require.NoError(t, err)
	require.Equal(t, 1, l.cut("b:1"))
	conn := &lateConn{of: &l}
	_, err = dial.made(conn, nil)
	require.ErrorIs(t, err, errReplaced)
	require.True(t, conn.free, "a close may take seconds: a TLS connection writes to its peer")
}
