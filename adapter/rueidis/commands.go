package rueidis

import (
	"context"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/redis/rueidis"
)

const (
	// together is how many commands are sent at most in one go.
	together = 256
	// underWay is how many batches of commands may be without their replies. Each has
	// a goroutine, which ends with it.
	underWay = 256
)

// commands gives a dedicated connection the shape of a redigo connection on which
// commands are sent: one goroutine calls Send and Flush, another one Receive.
//
// What is flushed is sent in batches, each by a goroutine that waits for the replies.
// The next one follows as soon as rueidis has put the last one into its queue, so that
// nothing overtakes anything, and what is flushed in the meantime goes together. All
// commands are marked as blocking, which on a dedicated connection means that rueidis
// sets no deadline of its own, and that closing the connection does not wait for the
// replies.
type commands struct {
	*dedicated
	unflushed []rueidis.Completed   // the sender's
	replies   []rueidis.RedisResult // the receiver's

	come chan struct{} // the oldest batch may be answered
	lost <-chan error  // tells of a connection that breaks while nothing is under way; the receiver's

	mu      sync.Mutex // guards what follows
	flushed []rueidis.Completed
	batches []*batch // under way, or answered and not received, the oldest first
	sending *batch   // not in rueidis' queue yet; nil: another one may be sent
	busy    int      // batches without replies
}

// batch is commands that are sent in one go. It is the context that they are sent
// with, which never ends.
type batch struct {
	context.Context //nolint:containedctx // it is one
	conn            *commands
	all             []rueidis.Completed
	replies         []rueidis.RedisResult // nil: none yet; guarded by commands.mu
}

var _ redis.ConnWithTimeout = (*commands)(nil)

func newCommands(d *dedicated) *commands {
	return &commands{dedicated: d, come: make(chan struct{}, 1)}
}

// Send implements redis.Conn.
func (c *commands) Send(command string, args ...any) error {
	if err := c.Err(); err != nil {
		return err
	}
	words := texts(args)
	c.unflushed = append(c.unflushed, c.client.B().Arbitrary(command).Args(words...).Blocking())
	return nil
}

// Flush implements redis.Conn. It does not wait for the network.
func (c *commands) Flush() error {
	c.mu.Lock()
	c.flushed = append(c.flushed, c.unflushed...)
	c.advance()
	c.mu.Unlock()
	clear(c.unflushed)
	c.unflushed = c.unflushed[:0]
	return c.Err()
}

// advance sends a batch if there is something to send and one may be sent, mu held.
func (c *commands) advance() {
	if c.sending != nil || len(c.flushed) == 0 || c.busy >= underWay {
		return
	}
	n := min(len(c.flushed), together)
	b := &batch{Context: context.Background(), conn: c, all: c.flushed[:n:n]}
	if c.flushed = c.flushed[n:]; len(c.flushed) == 0 {
		c.flushed = nil // the batch keeps the array
	}
	c.sending = b
	c.busy++
	c.batches = append(c.batches, b)
	go b.send()
}

// send sends the batch and waits for the replies, or for the end of the connection.
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
	default: // the receiver is awake
	}
}

// forever is never closed.
var forever = make(chan struct{})

// Done is part of context.Context. rueidis asks for it when it has put the commands
// into its queue and begins to wait for their replies. If it asked at another time,
// batches might overtake each other, which their replies would not notice.
func (b *batch) Done() <-chan struct{} {
	b.queued()
	return forever
}

// queued lets the next batch follow.
func (b *batch) queued() {
	c := b.conn
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sending == b {
		c.sending = nil
		c.advance()
	}
}

// Receive implements redis.Conn.
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

// attend has rueidis tell of the connection's end, if r shows that it speaks the newer
// version of the protocol: the reply to CLIENT INFO does, which is among the first. In
// the older one rueidis would need another connection for that, so there the end is
// noticed with the next command.
func (c *commands) attend(r rueidis.RedisResult) {
	if c.lost != nil {
		return
	}
	if m, err := r.ToMessage(); err == nil && isVerbatim(&m) {
		c.lost = c.client.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: func(rueidis.PubSubMessage) {}})
	}
}

// next returns the replies to the oldest batch, nil if it has none yet.
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

// ReceiveWithTimeout implements redis.ConnWithTimeout. A timeout ends the connection.
func (c *commands) ReceiveWithTimeout(timeout time.Duration) (any, error) {
	if timeout > 0 {
		timer := time.AfterFunc(timeout, func() { _ = c.end(context.DeadlineExceeded) })
		defer timer.Stop()
	}
	return c.Receive()
}

// Do implements redis.Conn.
func (c *commands) Do(command string, args ...any) (any, error) {
	return c.DoWithTimeout(0, command, args...)
}

// DoWithTimeout implements redis.ConnWithTimeout.
func (c *commands) DoWithTimeout(timeout time.Duration, command string, args ...any) (any, error) {
	if err := c.Send(command, args...); err != nil {
		return nil, err
	}
	if err := c.Flush(); err != nil {
		return nil, err
	}
	return c.ReceiveWithTimeout(timeout)
}
