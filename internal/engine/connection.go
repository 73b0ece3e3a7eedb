package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/redlatch/redlatch/internal/label"
	"github.com/redlatch/redlatch/transport"
)

var (
	errNoCounter = errors.New("redlatch: the transport cannot count subscribers")

	// ErrOwnNotCounted says that a count of listeners proves nothing.
	ErrOwnNotCounted = errors.New("the server does not count this client's own listeners")
)

// Subscribe is the transport's, counted.
func (e *Engine) Subscribe(ctx context.Context, channel string) (transport.Subscription, error) {
	sub, err := e.Transport.Subscribe(ctx, channel)
	if err != nil {
		return nil, err
	}
	e.gauges.subscriptions.Add(1)
	return &counted{Subscription: sub, n: &e.gauges.subscriptions}, nil
}

// counted is a subscription that counts itself out when it is closed.
type counted struct {
	transport.Subscription
	n    *atomic.Int64
	once sync.Once
}

func (c *counted) Close() {
	c.Subscription.Close()
	c.once.Do(func() { c.n.Add(-1) })
}

// Listeners returns how many connections listen to each of channels, in their
// order, or an error when that cannot be found out. It is [transport.Counter]'s,
// of a transport that is one.
func (e *Engine) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	c, ok := e.Transport.(transport.Counter)
	if !ok {
		return nil, errNoCounter
	}
	return c.Listeners(ctx, channels...)
}

// ProvenListeners is [Engine.Listeners], and listens to the proof channel meanwhile:
// a zero says something only when that one is counted. It takes a command timeout
// at most. The error wraps ErrNotCounted.
func (e *Engine) ProvenListeners(ctx context.Context, proof string, channels ...string) ([]int64, error) {
	ctx, cancel := e.Open(ctx)
	defer cancel()
	ctx, stop := context.WithTimeoutCause(ctx, e.Command, fmt.Errorf("no answer within %v", e.Command))
	defer stop()
	counts, err := e.proven(ctx, proof, channels)
	switch {
	case err == nil:
		return counts, nil
	case e.IsClosing():
		err = ErrClosed
	case ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", EndOf(ctx), err) // which says which side did not answer
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

// LossTeller is implemented by transports that tell when a connection was lost, and not
// only when another one was made in its place.
type LossTeller interface {
	// Lost returns a channel that is closed with the next loss.
	Lost() <-chan struct{}
}

// doubted returns a channel that is closed when the server may have forgotten locks: a
// connection was lost, or another server is the master. Of a transport that tells only
// when a connection was replaced it is that, nil of one that tells nothing.
func (e *Engine) doubted() <-chan struct{} {
	if t, ok := e.Transport.(LossTeller); ok {
		return t.Lost()
	}
	return e.Reconnected()
}

// Reconnected returns a channel that is closed when a command connection was made
// in place of a lost one, nil where the transport does not tell.
func (e *Engine) Reconnected() <-chan struct{} {
	if r, ok := e.Transport.(transport.Reconnecter); ok {
		return r.Reconnected()
	}
	return nil
}

// Announce sees to it that the client's label is on the server, if it has one, from
// now until the client is closed. It does not block, and costs one look at a flag
// once the label is kept.
func (e *Engine) Announce() { e.label.Start() }

// newLabelWriter returns what keeps the client's label, nil when there is none.
func newLabelWriter(e *Engine) *label.Writer {
	if e.Label == "" {
		return nil
	}
	return label.New(label.Config{
		Key:         label.Key(e.ClientID),
		Text:        e.Label,
		Go:          e.Go,
		Send:        e.sendAside,
		Reconnected: e.Reconnected,
		Join:        e.Join,
		Leave:       e.Leave,
		Logger:      e.Logger,
	})
}

// sendAside runs one call that no caller waits for, also while the client shuts
// down. It takes no longer than a command may, and ends when stop is closed.
func (e *Engine) sendAside(stop <-chan struct{}, fill func(*transport.Call)) error {
	a := e.Attempt()
	fill(&a.Call)
	_, err := a.run(context.Background(), e.Command, stop)
	return err
}
