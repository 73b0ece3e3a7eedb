package rueidis

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/redis/rueidis"
)

var (
	errClosed   = errors.New("rueidis: the connection was closed")
	errSwitched = errors.New("rueidis: the master is another one now")
	errListens  = errors.New("rueidis: the connection listens, and sends nothing")
)

// dedicated is one of the client's connections, and ours alone until it is closed.
type dedicated struct {
	client rueidis.DedicatedClient
	conns  *conns
	after  func() // runs when it has been closed
	closed chan struct{}

	once sync.Once
	err  error // why it was closed; set before closed is
}

// Err returns why the connection is of no use any more, nil while it is.
func (d *dedicated) Err() error {
	select {
	case <-d.closed:
		return d.err
	default:
		return nil
	}
}

// Close ends the connection at once. rueidis may need a second to let go of one whose
// server is silent; [conns.wait] waits for that, nobody else does.
func (d *dedicated) Close() error {
	_ = d.end(errClosed)
	return nil
}

// end closes the connection, unless it is closed, and returns why that was done first.
func (d *dedicated) end(why error) error {
	d.once.Do(func() {
		d.err = why
		close(d.closed)
		d.conns.forget(d)
	})
	return d.err
}

// orClosed returns why rueidis has given a connection up.
func orClosed(err error) error {
	if err == nil {
		return errClosed
	}
	return err
}

// ask sends a command and waits for the reply as long as ctx says. What the server says
// is no error; an error ends the connection.
func (d *dedicated) ask(ctx context.Context, command string) (rueidis.RedisResult, error) {
	stop := context.AfterFunc(ctx, func() { _ = d.end(context.Cause(ctx)) })
	r := d.client.Do(context.Background(), d.client.B().Arbitrary(command).Blocking())
	if err := r.NonRedisError(); !stop() || err != nil {
		return r, d.end(orClosed(err))
	}
	return r, nil
}

// release gives the connection back to rueidis, closed.
func (d *dedicated) release() {
	d.client.Close()
	d.after()
}

// conns are the connections that a transport has taken from the client.
type conns struct {
	wg sync.WaitGroup // what runs for them

	mu     sync.Mutex // guards what follows; not held while a connection is made or closed
	open   map[*dedicated]struct{}
	drops  int // how often all were dropped
	closed bool
}

// take takes a connection from client, which makes one if it has none that is idle.
// rueidis knows no way to stop it once it has begun: when ctx ends first the
// connection is given back as soon as it is there. When the connection has been given
// back end runs, unless it is nil.
func (c *conns) take(ctx context.Context, client rueidis.Client, end func()) (*dedicated, error) {
	if end == nil {
		end = func() {}
	}
	if err := ctx.Err(); err != nil {
		end()
		return nil, err
	}
	drops := c.dropped()
	came := make(chan rueidis.DedicatedClient)
	go func() {
		made, _ := client.Dedicate()
		select {
		case came <- made:
		case <-ctx.Done():
			made.Close()
			end()
		}
	}()
	select {
	case made := <-came:
		return c.keep(made, end, drops)
	case <-ctx.Done():
		return nil, fmt.Errorf("the rueidis client gave no connection: %w", context.Cause(ctx))
	}
}

// keep takes a connection in, unless all were dropped since it was asked for.
func (c *conns) keep(made rueidis.DedicatedClient, end func(), drops int) (*dedicated, error) {
	d := &dedicated{client: made, conns: c, after: end, closed: make(chan struct{})}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.drops != drops {
		c.wg.Go(d.release)
		return nil, errClosed
	}
	if c.open == nil {
		c.open = map[*dedicated]struct{}{}
	}
	c.open[d] = struct{}{}
	return d, nil
}

// forget gives a connection up.
func (c *conns) forget(d *dedicated) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, d)
	c.wg.Go(d.release)
}

func (c *conns) dropped() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.drops
}

// drop closes all connections that there are, and those that are being made.
func (c *conns) drop(why error) int {
	c.mu.Lock()
	c.drops++
	all := make([]*dedicated, 0, len(c.open))
	for d := range c.open {
		all = append(all, d)
	}
	c.mu.Unlock()
	for _, d := range all {
		_ = d.end(why)
	}
	return len(all)
}

// wait closes what is left and waits for rueidis to let go.
func (c *conns) wait() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.drop(errClosed)
	c.wg.Wait()
}
