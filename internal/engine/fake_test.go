package engine

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

const (
	testCommand = 3 * time.Second
	testLease   = 30 * time.Second
)

// fake is a transport whose outcomes the test decides, one by one or by a rule.
type fake struct {
	conn   int64 // calls are sent on it, 0 when its id is not known
	queues bool  // calls are not sent, but wait to be
	answer func(c *sentCall) (reply any, err error, ok bool)

	mu     sync.Mutex // guards what follows; not held while done runs
	calls  []*sentCall
	closed bool
}

// sentCall is a call that was started.
type sentCall struct {
	call *transport.Call
	done transport.Done
	at   time.Time
	name string
	once sync.Once
}

// ends ends the call with an outcome, once.
func (c *sentCall) ends(reply any, err error) { c.once.Do(func() { c.done(reply, err) }) }

var errFakeClosed = fmt.Errorf("%w: %w", transport.ErrUncertain, transport.ErrClosed)

// Start is part of transport.Transport.
func (f *fake) Start(call *transport.Call, done transport.Done) {
	c := &sentCall{call: call, done: done, at: time.Now(), name: call.Name()}
	f.mu.Lock()
	f.calls = append(f.calls, c)
	closed := f.closed
	f.mu.Unlock()
	switch {
	case closed:
		c.ends(nil, fmt.Errorf("%w: %w", transport.ErrNotSent, transport.ErrClosed))
		return
	case f.queues:
		return
	case !call.Claim(f.conn):
		c.ends(nil, transport.ErrNotSent)
		return
	}
	if f.answer != nil {
		if reply, err, ok := f.answer(c); ok {
			c.ends(reply, err)
		}
	}
}

// Subscribe is part of transport.Transport.
func (f *fake) Subscribe(context.Context, string) (transport.Subscription, error) {
	return nil, transport.ErrNotSent
}

// PublishCommand is part of transport.Transport.
func (f *fake) PublishCommand() string { return "PUBLISH" }

// Close is part of transport.Transport.
func (f *fake) Close() error {
	f.mu.Lock()
	f.closed = true
	calls := f.calls
	f.mu.Unlock()
	for _, c := range calls {
		c.ends(nil, errFakeClosed)
	}
	return nil
}

// sent returns the calls so far.
func (f *fake) sent() []*sentCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*sentCall(nil), f.calls...)
}

// last returns the latest call.
func (f *fake) last(t *testing.T) *sentCall {
	t.Helper()
	calls := f.sent()
	require.NotEmpty(t, calls, "nothing was sent")
	return calls[len(calls)-1]
}

// fencing is a transport that can kill connections.
type fencing struct {
	*fake
	fence func(ctx context.Context) error

	mu     sync.Mutex // guards fenced
	fenced []time.Time
}

// Fence is part of transport.Fencer.
func (f *fencing) Fence(ctx context.Context, _ *transport.Call) error {
	f.mu.Lock()
	f.fenced = append(f.fenced, time.Now())
	f.mu.Unlock()
	return f.fence(ctx)
}

// times returns when fences were set.
func (f *fencing) times() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]time.Time(nil), f.fenced...)
}

// reconnecting is a transport that tells of new connections.
type reconnecting struct {
	*fake
	back chan struct{}
}

// Reconnected is part of transport.Reconnecter.
func (r *reconnecting) Reconnected() <-chan struct{} { return r.back }

// diary is what an engine logged.
type diary struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

// Write is part of io.Writer.
func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.buf.Write(p)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.buf.String()
}

// count returns how many lines have a text.
func (d *diary) count(text string) int { return strings.Count(d.String(), text) }

// engineOver returns an engine that is closed with the test, and its log.
func engineOver(t *testing.T, tr transport.Transport) (*Engine, *diary) {
	t.Helper()
	log := &diary{}
	e := New(Config{
		Transport: tr,
		ClientID:  uuid.New(),
		Lease:     testLease,
		Command:   testCommand,
		PollCap:   10 * time.Second,
		Logger:    slog.New(slog.NewTextHandler(log, nil)),
	})
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e, log
}

// haunting counts what ghosts are told.
type haunting struct {
	mu      sync.Mutex // guards what follows
	times   int
	reply   any
	err     error
	attempt *Attempt
}

// Haunt is part of Ghost.
func (h *haunting) Haunt(a *Attempt, reply any, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.times++
	h.attempt, h.reply, h.err = a, reply, err
}

func (h *haunting) seen() (times int, reply any, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.times, h.reply, h.err
}
