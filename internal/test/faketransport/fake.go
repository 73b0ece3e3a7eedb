// Package faketransport provides fake transports for tests.
package faketransport

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// Fake is a transport for which the test chooses the results of calls.
type Fake struct {
	Conn   int64 // passed to Claim; 0 if unknown
	Queues bool  // whether calls are queued instead of sent
	Answer func(c *SentCall) (reply any, err error, ok bool)

	mu     sync.Mutex // guards the fields below; not held while done runs
	calls  []*SentCall
	closed bool
}

// SentCall is a call that has been started.
type SentCall struct {
	// Call may be reused after the call has ended.
	Call   *transport.Call
	Name   string
	At     time.Time
	Urgent bool
	done   transport.Done
	once   sync.Once
}

// Ends ends the call. Further calls to Ends have no effect.
func (c *SentCall) Ends(reply any, err error) { c.once.Do(func() { c.done(reply, err) }) }

var errFakeClosed = fmt.Errorf("%w: %w", transport.ErrUncertain, transport.ErrClosed)

// Start implements transport.Transport.
func (f *Fake) Start(call *transport.Call, done transport.Done) {
	c := &SentCall{Call: call, done: done, At: time.Now(), Name: call.Name(), Urgent: call.Urgent}
	f.mu.Lock()
	f.calls = append(f.calls, c)
	closed := f.closed
	f.mu.Unlock()
	switch {
	case closed:
		c.Ends(nil, fmt.Errorf("%w: %w", transport.ErrNotSent, transport.ErrClosed))
		return
	case f.Queues:
		return
	case !call.Claim(f.Conn):
		c.Ends(nil, transport.ErrNotSent)
		return
	}
	if f.Answer != nil {
		if reply, err, ok := f.Answer(c); ok {
			c.Ends(reply, err)
		}
	}
}

// Subscribe implements transport.Transport.
func (f *Fake) Subscribe(context.Context, string) (transport.Subscription, error) {
	return nil, transport.ErrNotSent
}

// PublishCommand implements transport.Transport.
func (f *Fake) PublishCommand() string { return "PUBLISH" }

// Close implements transport.Transport.
func (f *Fake) Close() error {
	f.mu.Lock()
	f.closed = true
	calls := f.calls
	f.mu.Unlock()
	for _, c := range calls {
		c.Ends(nil, errFakeClosed)
	}
	return nil
}

// Sent returns all calls that have been started.
func (f *Fake) Sent() []*SentCall {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*SentCall(nil), f.calls...)
}

// Last returns the call that was started last.
func (f *Fake) Last(t *testing.T) *SentCall {
	t.Helper()
	calls := f.Sent()
	require.NotEmpty(t, calls, "nothing was sent")
	return calls[len(calls)-1]
}

// Fencing is a Fake that can kill connections.
type Fencing struct {
	*Fake
	Kill func(ctx context.Context) error

	mu     sync.Mutex // guards fenced
	fenced []time.Time
}

// Fence implements transport.Fencer.
func (f *Fencing) Fence(ctx context.Context, _ *transport.Call) error {
	f.mu.Lock()
	f.fenced = append(f.fenced, time.Now())
	f.mu.Unlock()
	return f.Kill(ctx)
}

// Times returns the times of all calls to Fence.
func (f *Fencing) Times() []time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]time.Time(nil), f.fenced...)
}

// Reconnecting is a Fake that implements transport.Reconnecter.
type Reconnecting struct {
	*Fake
	Back chan struct{}
}

// Reconnected implements transport.Reconnecter.
func (r *Reconnecting) Reconnected() <-chan struct{} { return r.Back }

// Log is an io.Writer that records log messages.
type Log struct {
	mu  sync.Mutex // guards buf
	buf bytes.Buffer
}

// Write implements io.Writer.
func (d *Log) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.buf.Write(p)
}

// String returns what has been written so far.
func (d *Log) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.buf.String()
}

// Count returns how many times text has been logged.
func (d *Log) Count(text string) int { return strings.Count(d.String(), text) }

// Distant is a transport that delays replies.
type Distant struct {
	transport.Transport

	replies sync.WaitGroup
}

// Start implements transport.Transport.
func (d *Distant) Start(call *transport.Call, done transport.Done) {
	d.Transport.Start(call, func(reply any, err error) {
		d.replies.Go(func() {
			time.Sleep(50 * time.Millisecond)
			done(reply, err)
		})
	})
}

// Wait waits until all delayed replies have been delivered.
func (d *Distant) Wait() { d.replies.Wait() }

// Meter counts and delays the calls of transports.
type Meter struct {
	Delay func() time.Duration

	mu     sync.Mutex // guards counts
	counts map[string]int
}

// Reset returns the number of calls with each name since the last Reset.
func (m *Meter) Reset() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := m.counts
	m.counts = map[string]int{}
	return counts
}

func (m *Meter) count(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.counts != nil {
		m.counts[name]++
	}
}

// Over returns a transport whose calls are counted, after the first Reset, and delayed.
func (m *Meter) Over(tr transport.Transport) transport.Transport { return metered{tr, m} }

type metered struct {
	transport.Transport
	*Meter
}

func (m metered) Start(call *transport.Call, done transport.Done) {
	time.AfterFunc(m.Delay(), func() {
		m.count(call.Name())
		m.Transport.Start(call, done)
	})
}

func (m metered) Listeners(ctx context.Context, channels ...string) ([]int64, error) {
	m.count("PUBSUB")
	counter, _ := m.Transport.(transport.Counter)
	return counter.Listeners(ctx, channels...)
}
