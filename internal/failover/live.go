package failover

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gomodule/redigo/redis"

	"github.com/redlatch/redlatch/internal/redisconn"
)

var errReplaced = errors.New("redlatch: the Sentinels now name another master")

// live is the set of connections and dials. It is safe for concurrent use.
type live struct {
	mu     sync.Mutex // also guards liveConns
	conns  map[*liveConn]struct{}
	cuts   int    // number of calls to cut
	master string // as passed to the last call to cut
}

// liveConn is a connection or a dial.
type liveConn struct {
	redis.ConnWithTimeout // nil during the dial
	addr                  string
	of                    *live
	cancel                context.CancelCauseFunc
	astray                bool // it leads to a former master
}

func (l *live) cutsSoFar() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cuts
}

// begin registers a dial to addr, so that cut can end it by calling cancel. cuts is the number of
// calls to cut before the query that returned addr. If cut was called since then, there may have
// been another failover, so begin fails unless addr was named as the master in that call.
func (l *live) begin(addr string, cuts int, cancel context.CancelCauseFunc) (*liveConn, error) {
	c := &liveConn{addr: addr, of: l, cancel: cancel}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cuts != cuts && l.master != addr {
		return nil, errReplaced
	}
	if l.conns == nil {
		l.conns = map[*liveConn]struct{}{}
	}
	l.conns[c] = struct{}{}
	return c, nil
}

func (c *liveConn) made(conn redis.Conn, err error) (redis.Conn, error) {
	timed, ok := conn.(redis.ConnWithTimeout)
	if err = redisconn.AtNode(c.addr, err); err == nil && !ok {
		err = fmt.Errorf("dialed connection %T does not implement redis.ConnWithTimeout", conn)
	}
	if err = c.enter(timed, err); err == nil {
		return c, nil
	}
	if conn != nil {
		_ = conn.Close()
	}
	return nil, err
}

// enter records the outcome of the dial. It returns errReplaced if the dial led to a former master.
func (c *liveConn) enter(conn redis.ConnWithTimeout, err error) error {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.astray {
		err = errReplaced
	}
	if err != nil {
		delete(c.of.conns, c)
		return err
	}
	c.ConnWithTimeout = conn
	return nil
}

func (c *liveConn) Unwrap() redis.Conn { return c.ConnWithTimeout }

func (c *liveConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.ConnWithTimeout.Close()
}

func (l *live) leadTo(addr string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	some := false
	for c := range l.conns {
		if c.addr != addr {
			return false
		}
		some = some || c.ConnWithTimeout != nil
	}
	return some
}

func (l *live) cut(addr string) int {
	made, dials := l.elsewhere(addr)
	for _, c := range dials {
		c.cancel(errReplaced)
	}
	for _, c := range made {
		_ = c.Close()
	}
	return len(made) + len(dials)
}

func (l *live) elsewhere(addr string) (made, dials []*liveConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cuts++
	l.master = addr
	for c := range l.conns {
		if c.addr == addr {
			continue
		}
		c.astray = true
		if c.ConnWithTimeout == nil {
			dials = append(dials, c)
		} else {
			made = append(made, c)
		}
	}
	return made, dials
}
