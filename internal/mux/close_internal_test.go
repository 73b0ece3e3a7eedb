package mux

import (
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/test/scripted"
	"github.com/redlatch/redlatch/transport"
)

// Close closes the queue before it cancels the context. If the connection ends in between, its
// goroutine must know that Close has begun.
func TestCloseDoesNotReportConnectionLost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var lost atomic.Int32
		p := &scripted.Server{}
		p.Answer(func(int, []string) string { return ":7\r\n" })
		p.Buffered = true
		m := New(Config{Dial: p.Dial, OnLost: func() { lost.Add(1) }})
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
