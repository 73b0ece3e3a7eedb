package redlatchui

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/redlatch/redlatch/redlatchui/internal/board"
)

const (
	// actsAtOnce is how many actions may be under way, actsOfOne how many of them for one viewer.
	actsAtOnce, actsOfOne = 32, 4
)

// Why an action is not begun while others are under way.
var (
	errActing = fmt.Errorf("you have %d actions under way: wait until one has ended. Nothing was done", actsOfOne)
	errCrowd  = errors.New("too many actions are under way: try again in a minute. Nothing was done")
)

// acting counts the actions that are under way. It is safe for concurrent use.
type acting struct {
	mu     sync.Mutex
	closed bool
	total  int
	of     map[string]int // by viewer
	ended  sync.WaitGroup
}

// begin counts an action of a viewer, until end is called.
func (c *acting) begin(viewer string) (end func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return nil, board.ErrClosed
	case c.of[viewer] >= actsOfOne:
		return nil, errActing
	case c.total >= actsAtOnce:
		return nil, errCrowd
	}
	if c.of == nil {
		c.of = map[string]int{}
	}
	c.total++
	c.of[viewer]++
	c.ended.Add(1)
	return func() { c.end(viewer) }, nil
}

func (c *acting) end(viewer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.total--
	if c.of[viewer]--; c.of[viewer] == 0 {
		delete(c.of, viewer)
	}
	c.ended.Done()
}

// close lets no action begin, and waits until those under way have ended.
func (c *acting) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.ended.Wait()
}

// viewer is what tells viewers apart: the user, or the address without one.
func (a *Attempt) viewer() string {
	host, _, err := net.SplitHostPort(a.Remote)
	if err != nil {
		host = a.Remote
	}
	return cmp.Or(a.User, host)
}
