package redisconn_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/redisconn"
	"github.com/redlatch/redlatch/transport"
)

// copying breaks Replicate.
type copying struct {
	*redisconn.Redigo
	replicate replicate
}

type replicate func(r *redisconn.Redigo, call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated)

func (c copying) Replicate(call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
	c.replicate(c.Redigo, call, replicas, timeout, done)
}

func replicas(f replicate) func(*redisconn.Redigo) transport.Transport {
	return func(r *redisconn.Redigo) transport.Transport { return copying{r, f} }
}

// elsewhere writes on one connection and waits on another, as of a pool.
func elsewhere(r *redisconn.Redigo, call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
	r.Start(call, func(reply any, err error) {
		if err != nil {
			done(nil, 0, err)
			return
		}
		go func() {
			have, err := waitAlone(r, replicas, timeout)
			done(reply, have, err)
		}()
	})
}

// waitAlone waits on a connection on which nothing was written.
func waitAlone(r *redisconn.Redigo, replicas int, timeout time.Duration) (int64, error) {
	info, err := redis.String(mux.Do(context.Background(), r, &transport.Call{Command: "CLIENT", Args: []any{"INFO"}}))
	if err != nil {
		return 0, err
	}
	_, addr, _ := strings.Cut(info, " laddr=")
	addr, _, _ = strings.Cut(addr, " ")
	conn, err := redis.Dial("tcp", addr)
	if err != nil {
		return 0, err
	}
	defer func() { _ = conn.Close() }()
	return redis.Int64(conn.Do("WAIT", replicas, timeout.Milliseconds()))
}

// onTheMux waits where all others wait.
func onTheMux(r *redisconn.Redigo, call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
	written := make(chan any, 1)
	r.Start(call, func(reply any, _ error) { written <- reply })
	r.Start(&transport.Call{Command: "WAIT", Args: []any{replicas, timeout.Milliseconds()}}, func(reply any, err error) {
		have, _ := reply.(int64)
		done(<-written, have, err)
	})
}

func forLong(r *redisconn.Redigo, call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
	r.Replicate(call, replicas, timeout+time.Minute, done)
}

// oneByOne waits for one call after the other.
func oneByOne(r *redisconn.Redigo) transport.Transport {
	var turn sync.Mutex
	return replicas(func(r *redisconn.Redigo, call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
		go func() {
			turn.Lock()
			defer turn.Unlock()
			over := make(chan struct{})
			r.Replicate(call, replicas, timeout, func(reply any, have int64, err error) {
				done(reply, have, err)
				close(over)
			})
			<-over
		}()
	})(r)
}

func noErrors(r *redisconn.Redigo, call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
	r.Replicate(call, replicas, timeout, func(reply any, have int64, _ error) { done(reply, have, nil) })
}

// copied sends a copy, which is not withdrawn.
func copied(r *redisconn.Redigo, call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
	r.Replicate(&transport.Call{Script: call.Script, Command: call.Command, NumKeys: call.NumKeys, Args: call.Args}, replicas, timeout, done)
}

func neverClosed(r *redisconn.Redigo, call *transport.Call, replicas int, timeout time.Duration, done transport.Replicated) {
	r.Replicate(call, replicas, timeout, func(reply any, have int64, err error) {
		if errors.Is(err, transport.ErrClosed) {
			err = transport.ErrUncertain
		}
		done(reply, have, err)
	})
}
