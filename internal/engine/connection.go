package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/transport"
)

var (
	errNoCounter = errors.New("redlatch: the transport cannot count subscribers")

	// ErrOwnNotCounted means that the server's subscriber counts are unreliable.
	ErrOwnNotCounted = errors.New("the server does not count this client's own listeners")
)

// Subscribe subscribes to channel and counts the subscription.
func (e *Engine) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	sub, err := e.Transport.Subscribe(ctx, channel)
	if err != nil {
		return nil, err
	}
	e.subscriptions.Add(1)
	return &counted{Subscription: sub, n: &e.subscriptions}, nil
}

type counted struct {
	transport.Subscription
	n    *atomic.Int64
	once sync.Once
}

func (c *counted) Close() {
	c.Subscription.Close()
	c.once.Do(func() { c.n.Add(-1) })
}

// Listeners returns how many connections are subscribed to each channel, if the transport can count them.
func (e *Engine) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	c, ok := e.Transport.(transport.Counter)
	if !ok {
		return nil, errNoCounter
	}
	return c.Listeners(ctx, channels...)
}

// ProvenListeners is like [Engine.Listeners], but it fails unless the server counts the engine's own subscription to
// the proof channel. This makes a zero reliable. The error wraps ErrNotCounted.
func (e *Engine) ProvenListeners(ctx context.Context, proof string, channels ...string) ([]int64, error) {
	ctx, cancel := e.Open(ctx)
	defer cancel()
	ctx, stop := context.WithTimeoutCause(ctx, e.Command, fmt.Errorf("no reply within %v", e.Command))
	defer stop()
	counts, err := e.proven(ctx, proof, channels)
	switch {
	case err == nil:
		return counts, nil
	case e.IsClosing():
		err = ErrClosed
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", EndOf(ctx), err)
	}
	return nil, fmt.Errorf("%w: %w", ErrNotCounted, err)
}

func (e *Engine) proven(ctx context.Context, proof string, channels []string) ([]int64, error) {
	sub, err := e.Subscribe(ctx, proof)
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	counts, err := e.Listeners(ctx, append([]string{proof}, channels...)...)
	if err != nil {
		return nil, err
	}
	if counts[0] < 1 {
		return nil, ErrOwnNotCounted
	}
	return counts[1:], nil
}

// LossTeller is implemented by transports that report a lost connection before it is replaced.
type LossTeller interface {
	// Lost returns a channel that is closed when a connection is next lost.
	Lost() <-chan struct{}
}

// doubted returns a channel that is closed when the server may have forgotten locks. It returns nil if the transport
// doesn't report that.
func (e *Engine) doubted() <-chan struct{} {
	if t, ok := e.Transport.(LossTeller); ok {
		return t.Lost()
	}
	return e.Reconnected()
}

// Reconnected returns a channel that is closed when a lost command connection has been replaced, or nil if the
// transport doesn't report that.
func (e *Engine) Reconnected() <-chan struct{} {
	if r, ok := e.Transport.(transport.Reconnecter); ok {
		return r.Reconnected()
	}
	return nil
}
