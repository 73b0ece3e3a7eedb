package mux_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

// instant is a connection that replies immediately and doesn't allocate.
type instant struct {
	pending atomic.Int64
	replies chan struct{}
	closed  chan struct{}
}

func newInstant() *instant {
	return &instant{replies: make(chan struct{}, 4096), closed: make(chan struct{})}
}

var errGone = errors.New("closed")

func (c *instant) Send(string, ...any) error { c.pending.Add(1); return nil }

func (c *instant) Flush() error {
	for range c.pending.Swap(0) {
		c.replies <- struct{}{}
	}
	return nil
}

func (c *instant) ReceiveWithTimeout(time.Duration) (any, error) {
	select {
	case <-c.replies:
		return nil, nil //nolint:nilnil // as Redis answers nil
	case <-c.closed:
		return nil, errGone
	}
}

func (c *instant) Receive() (any, error)          { return c.ReceiveWithTimeout(0) }
func (c *instant) Do(string, ...any) (any, error) { panic("Do on a shared connection") }
func (c *instant) DoWithTimeout(time.Duration, string, ...any) (any, error) {
	panic("Do on a shared connection")
}
func (c *instant) Err() error   { return nil }
func (c *instant) Close() error { close(c.closed); return nil }

// caller repeats one call, as a lock does.
type caller struct {
	call   transport.Call
	script *transport.Script
	key    any
	args   [2]any
	came   chan error
	done   transport.Done
}

func newCaller() *caller {
	c := &caller{script: transport.NewScript("nothing", "return nil"), came: make(chan error, 1)}
	c.key, c.args = "key", [2]any{int64(30000), "owner"}
	c.done = func(_ any, err error) { c.came <- err }
	return c
}

func (c *caller) run(m *mux.Mux) error {
	args := append(c.call.Args[:0], c.key, c.args[0], c.args[1])
	c.call = transport.Call{Script: c.script, NumKeys: 1, Args: args}
	m.Start(&c.call, c.done)
	return <-c.came
}

// Not parallel: AllocsPerRun counts the whole process.
func TestCallsDoNotAllocate(t *testing.T) { //nolint:paralleltest // see above
	m := open(t, mux.Config{Dial: func(context.Context) (redis.Conn, error) { return newInstant(), nil }})
	c := newCaller()
	for range 1000 {
		require.NoError(t, c.run(m))
	}
	var failed error
	n := testing.AllocsPerRun(5000, func() { failed = errors.Join(failed, c.run(m)) })
	require.NoError(t, failed)
	assert.LessOrEqual(t, n, 0.1)
}
