package rueidis

import (
	"context"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

const (
	together = 256
	underWay = 256 // maximum number of batches without replies; each has a goroutine
)

// commands adapts a dedicated connection to a redigo connection for commands: one goroutine calls Send and Flush,
// another calls Receive.
//
// Each batch is sent by a goroutine that waits for the replies. The next batch is sent after rueidis has queued the
// previous one, which keeps the order. All commands are marked as blocking, so that rueidis does not set a deadline
// and closing the connection does not wait for the replies.
type commands struct {
	*dedicated
	unflushed []rueidis.Completed   // used only by the sender
	replies   []rueidis.RedisResult // used only by the receiver

	come chan struct{} // signaled when the oldest batch may have replies
	lost <-chan error  // the error of an idle connection; used only by the receiver

	mu      sync.Mutex // guards the fields below
	flushed []rueidis.Completed
	batches []*batch // in flight, or with unread replies; oldest first
	sending *batch
	busy    int
}

// batch is a context that never ends. rueidis calls its Done method after it has queued the
// commands.
type batch struct {
	context.Context //nolint:containedctx // batch is itself a context
	conn            *commands
	all             []rueidis.Completed
	replies         []rueidis.RedisResult // guarded by commands.mu
}

func newCommands(d *dedicated) *commands {
	return &commands{dedicated: d, come: make(chan struct{}, 1)}
}

func (c *commands) Send(command string, args ...any) error {
	if err := c.Err(); err != nil {
		return err
	}
	words := texts(args)
	c.unflushed = append(c.unflushed, c.client.B().Arbitrary(command).Args(words...).Blocking())
	return nil
}

func (c *commands) Flush() error {
	c.mu.Lock()
	c.flushed = append(c.flushed, c.unflushed...)
	c.advance()
	c.mu.Unlock()
	clear(c.unflushed)
	c.unflushed = c.unflushed[:0]
	return c.Err()
}

// advance sends the next batch if possible. It is called with mu held.
func (c *commands) advance() {
	if c.sending != nil || len(c.flushed) == 0 || c.busy >= underWay {
		return
	}
	n := min(len(c.flushed), together)
	b := &batch{Context: context.Background(), conn: c, all: c.flushed[:n:n]}
	if c.flushed = c.flushed[n:]; len(c.flushed) == 0 {
		c.flushed = nil // the batch owns the array
	}
	c.sending = b
	c.busy++
	c.batches = append(c.batches, b)
	go b.send()
}

func (b *batch) send() {
	replies := b.conn.client.DoMulti(b, b.all...)
	b.queued()
	c := b.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	b.replies = replies
	c.busy--
	c.advance()
	select {
	case c.come <- struct{}{}:
	default:
	}
}

var forever = make(chan struct{})

func (b *batch) Done() <-chan struct{} {
	b.queued()
	return forever
}

func (b *batch) queued() {
	c := b.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sending == b {
		c.sending = nil
		c.advance()
	}
}

func (c *commands) Receive() (any, error) {
	for len(c.replies) == 0 {
		if err := c.Err(); err != nil {
			return nil, err
		}
		if c.replies = c.next(); len(c.replies) > 0 {
			break
		}
		select {
		case <-c.come:
		case <-c.closed:
		case err := <-c.lost:
			return nil, c.end(orClosed(err))
		}
	}
	c.attend(c.replies[0])
	reply, err := received(c.replies[0])
	c.replies = c.replies[1:]
	if err != nil && !isRefusal(err) {
		return nil, c.end(err)
	}
	return reply, err
}

// attend makes rueidis report when the connection closes. It does so only with RESP3, which attend recognizes by a
// verbatim string. With RESP2, rueidis would use another connection, so the next command detects the close instead.
func (c *commands) attend(r rueidis.RedisResult) {
	if c.lost != nil {
		return
	}
	if m, err := r.ToMessage(); err == nil && isVerbatim(&m) {
		c.lost = c.client.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(rueidis.PubSubMessage) {}})
	}
}

func (c *commands) next() []rueidis.RedisResult {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.batches) == 0 || c.batches[0].replies == nil {
		return nil
	}
	replies := c.batches[0].replies
	c.batches[0] = nil
	if c.batches = c.batches[1:]; len(c.batches) == 0 {
		c.batches = nil
	}
	return replies
}

func (c *commands) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	if timeout > 0 {
		timer := time.AfterFunc(timeout, func() { _ = c.end(context.DeadlineExceeded) })
		defer timer.Stop()
	}
	return c.Receive()
}

func (c *commands) DoWithTimeout(timeout time.Duration, command string, args ...any) (any, error) {
	if err := c.Send(command, args...); err != nil {
		return nil, err
	}
	if err := c.Flush(); err != nil {
		return nil, err
	}
	return c.ReceiveWithTimeout(timeout)
}
