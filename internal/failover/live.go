package failover

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/gomodule/redigo/redis"
)

// errReplaced ends a dial to a server that is not the master any more.
var errReplaced = errors.New("redlatch: the Sentinels name another master by now")

// live is the connections to the master that there are, and those that are being made. The
// zero value has none. It is safe for concurrent use.
type live struct {
	mu     sync.Mutex // guards what follows, those of liveConns included
	conns  map[*liveConn]struct{}
	cuts   int    // how often cut was called
	master string // what it was called with last
}

// liveConn is one of them, until it is closed.
type liveConn struct {
	redis.ConnWithTimeout // nil while it is being made
	addr                  string
	of                    *live
	cancel                context.CancelCauseFunc // of the dial
	astray                bool                    // it leads to a former master
}

// cutsSoFar returns what begin wants to know.
func (l *live) cutsSoFar() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cuts
}

// begin puts a connection to the server at addr that is about to be made among them: cut
// ends its dial by cancel. Cuts is how many cuts there had been when the address was
// asked for. A cut since then may follow a later switch.
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

// made takes what the dial has returned, and returns what is to be used in its place.
func (c *liveConn) made(conn redis.Conn, err error) (redis.Conn, error) {
	timed, ok := conn.(redis.ConnWithTimeout)
	if err == nil && !ok {
		err = fmt.Errorf("the dialled connection, a %T, does not support redis.ConnWithTimeout", conn)
	}
	c.of.mu.Lock()
	if c.astray {
		err = errReplaced
	}
	if err == nil {
		c.ConnWithTimeout = timed
	} else {
		delete(c.of.conns, c)
	}
	c.of.mu.Unlock()
	if err == nil {
		return c, nil
	}
	if conn != nil {
		_ = conn.Close() // it is of no use
	}
	return nil, err
}

// Unwrap returns the connection that was added.
func (c *liveConn) Unwrap() redis.Conn { return c.ConnWithTimeout }

func (c *liveConn) Close() error {
	c.of.mu.Lock()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.ConnWithTimeout.Close()
}

// leadTo reports whether there are connections and all lead to addr.
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

// cut ends the connections that lead elsewhere than to addr, and the dials that would, and
// returns how many.
func (l *live) cut(addr string) int {
	made, dials := l.elsewhere(addr)
	for _, c := range dials {
		c.cancel(errReplaced)
	}
	for _, c := range made {
		_ = c.Close() // what reads and writes on it fails now
	}
	return len(made) + len(dials)
}

// elsewhere notes that the server at addr is master, and returns the connections that do
// not lead there, and the dials.
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
