package failover

import (
	"fmt"
	"sync"

	"github.com/gomodule/redigo/redis"
)

// live is the connections to the master that there are. The zero value has none. It is
// safe for concurrent use.
type live struct {
	mu    sync.Mutex // guards conns
	conns map[*liveConn]struct{}
}

// liveConn is one of them, until it is closed.
type liveConn struct {
	redis.ConnWithTimeout
	addr string
	of   *live
}

// add puts conn, which leads to the server at addr, among them, and returns what is to be
// used in its place: until that is closed it is one of them.
func (l *live) add(conn redis.Conn, addr string) (redis.Conn, error) {
	timed, ok := conn.(redis.ConnWithTimeout)
	if !ok {
		if conn != nil {
			_ = conn.Close() // it is of no use
		}
		return nil, fmt.Errorf("the dialled connection, a %T, does not support redis.ConnWithTimeout", conn)
	}
	c := &liveConn{timed, addr, l}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns == nil {
		l.conns = map[*liveConn]struct{}{}
	}
	l.conns[c] = struct{}{}
	return c, nil
}

// Close is part of redis.Conn.
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
	return len(l.conns) > 0 && len(l.elsewhere(addr)) == 0
}

// cut ends the connections that lead elsewhere than to addr, and returns how many.
func (l *live) cut(addr string) int {
	l.mu.Lock()
	astray := l.elsewhere(addr)
	l.mu.Unlock()
	for _, c := range astray {
		_ = c.Close() // what reads and writes on it fails now
	}
	return len(astray)
}

// elsewhere returns the connections that do not lead to addr, mu held.
func (l *live) elsewhere(addr string) (astray []*liveConn) {
	for c := range l.conns {
		if c.addr != addr {
			astray = append(astray, c)
		}
	}
	return astray
}
