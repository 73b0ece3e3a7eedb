package engine

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/builtin"
	"github.com/redlatch/redlatch/internal/test/faketransport"
	"github.com/redlatch/redlatch/transport"
)

// leading is a transport whose callers wait in Lead.
type leading struct {
	*faketransport.Fake

	mu    sync.Mutex // guards stops
	stops map[*transport.Call]chan struct{}
	led   int
}

func newLeading() *leading {
	return &leading{Fake: &faketransport.Fake{}, stops: map[*transport.Call]chan struct{}{}}
}

func (l *leading) Leads(outermost transport.Transport) bool {
	return outermost == transport.Transport(l)
}

func (l *leading) Lead(ctx context.Context, call *transport.Call, done transport.Done, caller builtin.Caller) {
	stop := make(chan struct{}, 2)
	l.mu.Lock()
	l.stops[call] = stop
	l.led++
	l.mu.Unlock()
	ended := make(chan struct{})
	l.Start(call, func(reply any, err error) {
		done(reply, err)
		close(ended)
	})
	caller.Started()
	if caller.Waits() {
		select {
		case <-stop:
		case <-ended:
		case <-ctx.Done():
		}
	}
	l.mu.Lock()
	delete(l.stops, call)
	l.mu.Unlock()
}

func (l *leading) Interrupt(call *transport.Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if stop, ok := l.stops[call]; ok {
		stop <- struct{}{}
	}
}

type signal struct{ n int }

func (s *signal) Started() { s.n++ }

func TestLedAttemptEndsWithReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLeading()
		e, _ := engineOver(t, l)
		l.Answer = func(*faketransport.SentCall) (any, error, bool) { return int64(1), nil, true }
		a, sent := e.Attempt(), &signal{}
		a.Call.Command, a.Sent = "TEST", sent
		reply, err := a.Run(t.Context(), nil)
		require.NoError(t, err)
		require.Equal(t, int64(1), reply)
		assert.Equal(t, 1, sent.n)
		assert.Equal(t, 1, l.led)
	})
}

func TestReadingCallerIsInterrupted(t *testing.T) {
	for name, c := range map[string]struct {
		run   func(ctx context.Context, a *Attempt) error
		ends  func(e *Engine, cancel context.CancelFunc)
		after time.Duration
		want  []error
	}{
		"command timeout": {
			run:   func(ctx context.Context, a *Attempt) error { _, err := a.Run(ctx, nil); return err },
			after: testCommand, want: []error{ErrUncertain},
		},
		"attempt bound": {
			run:   func(_ context.Context, a *Attempt) error { _, err := a.RunFor(40*time.Millisecond, nil); return err },
			after: 40 * time.Millisecond, want: []error{ErrUncertain},
		},
		"its context ends": {
			run:   func(ctx context.Context, a *Attempt) error { _, err := a.Run(ctx, nil); return err },
			ends:  func(_ *Engine, cancel context.CancelFunc) { cancel() },
			after: 10 * time.Millisecond, want: []error{ErrUncertain, context.Canceled},
		},
		"the client closes": {
			run:   func(ctx context.Context, a *Attempt) error { _, err := a.Run(ctx, nil); return err },
			ends:  func(e *Engine, _ context.CancelFunc) { _ = e.Close() },
			after: 10 * time.Millisecond, want: []error{ErrUncertain, ErrClosed},
		},
		"the client closed before": {
			run:  func(ctx context.Context, a *Attempt) error { a.engine.refuse(); _, err := a.Run(ctx, nil); return err },
			want: []error{ErrUncertain, ErrClosed},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLeading()
				e, _ := engineOver(t, l)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				a := e.Attempt()
				a.Call.Command = "TEST"
				if c.ends != nil {
					time.AfterFunc(c.after, func() { c.ends(e, cancel) })
				}
				began := time.Now()
				err := c.run(ctx, a)
				assert.Equal(t, c.after, time.Since(began))
				for _, want := range c.want {
					assert.ErrorIs(t, err, want)
				}
				assert.Equal(t, 1, l.led)
				l.Last(t).Ends(int64(1), nil)
			})
		})
	}
}

// wrapped embeds a Leader and overrides Start.
type wrapped struct {
	*leading
	starts int
}

func (w *wrapped) Start(call *transport.Call, done transport.Done) {
	w.starts++
	w.leading.Start(call, done)
}

func TestEmbeddedLeaderDoesNotBypassStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wrapped{leading: newLeading()}
		e, _ := engineOver(t, w)
		w.Answer = func(*faketransport.SentCall) (any, error, bool) { return int64(1), nil, true }
		a := e.Attempt()
		a.Call.Command = "TEST"
		_, err := a.Run(t.Context(), nil)
		require.NoError(t, err)
		assert.Equal(t, 1, w.starts)
		assert.Zero(t, w.led)
	})
}
