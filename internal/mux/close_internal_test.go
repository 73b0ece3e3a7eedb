package mux

import (
	"bufio"
	"context"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

// Close closes the queue before it cancels the context. If the connection ends in between, its
// goroutine must know that Close has begun.
func TestAConnectionThatCloseEndsIsNotReportedAsLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int32
		dial := func(context.Context) (redis.Conn, error) {
			ours, theirs := net.Pipe()
			go answerAll(theirs)
			return redis.NewConn(ours, 0, 0), nil
		}
		m := New(Config{Dial: dial, OnLost: func() { lost.Add(1) }})
		answered := false
		m.Start(&transport.Call{Command: "PING"}, func(_ any, err error) { answered = err == nil })
		synctest.Wait()
		require.True(t, answered, "there is a connection to lose")
		m.queue.close() // the first half of Close
		synctest.Wait()
		require.Zero(t, lost.Load())
		require.NoError(t, m.Close())
		require.Zero(t, lost.Load())
	})
}

// answerAll replies to every command with a number.
func answerAll(c net.Conn) {
	for in := bufio.NewReader(c); ; {
		if _, err := redistest.ReadCommand(in); err != nil {
			return
		}
		go func() { _, _ = c.Write([]byte(":7\r\n")) }()
	}
}
