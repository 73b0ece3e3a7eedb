package engine

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch/transport"
)

const (
	// clockFresh is how long a comparison of the clocks is good for.
	clockFresh = time.Minute
	// clockApart is how far apart the clocks may be before that is worth a warning.
	clockApart = time.Second
)

// Clock is the time that scripts are given. It compares this machine's clock with the
// server's. All methods are safe for concurrent use.
type Clock struct {
	engine *Engine
	offset offset
}

// offset is how far the server's clock is ahead of this machine's.
type offset struct {
	mu       sync.Mutex // guards what follows; not held while the server is asked
	ahead    time.Duration
	accuracy time.Duration // of ahead, which it is off by at most
	known    bool          // there was a comparison
	at       time.Time     // of the last one, or of a refusal; zero: neither
	asking   chan struct{} // closed when the one under way is over; nil: none is
	apart    bool          // the clocks were apart when last compared
}

func (o *offset) load() time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.ahead
}

// begin reports whether it is time for a comparison, whether there was one before,
// and what is closed when the one under way is over, if one is. A caller for which
// it is time must call end.
func (o *offset) begin(now time.Time) (due, known bool, over <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.asking == nil && (o.at.IsZero() || now.Sub(o.at) >= clockFresh) {
		due, o.asking = true, make(chan struct{})
	}
	return due, o.known, o.asking
}

// end ends what begin began. Without an answer the next to come begins anew.
func (o *offset) end(now time.Time, answered bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.asking)
	o.asking = nil
	if answered {
		o.at = now
	}
}

// store takes a comparison in, and reports whether the clocks have come apart. One that is far less
// accurate than what was known, and does not contradict it, moves no clock: a request that was slow
// once would move one that is right.
func (o *offset) store(ahead, accuracy time.Duration) (news bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	apart := ahead.Abs()-accuracy > clockApart
	news = apart && !o.apart
	if o.known && accuracy > 2*o.accuracy && (ahead-o.ahead).Abs() <= accuracy+o.accuracy {
		o.accuracy = 2*o.accuracy + time.Millisecond // it counts for half as much the next time: clocks drift
	} else {
		o.ahead, o.accuracy = ahead, accuracy
	}
	o.apart, o.known = apart, true
	return news
}

// NowMillis returns the time that scripts are given, in milliseconds since 1970: this
// machine's, as Redisson's is its own machine's, or the server's as far as it is
// known, when that was asked for.
func (c *Clock) NowMillis() int64 {
	now := time.Now()
	if c.engine.ServerTime {
		now = now.Add(c.offset.load())
	}
	return now.UnixMilli()
}

// Compare asks for the server's time and returns how far it is ahead of this
// machine's, to half of the time that took.
func (c *Clock) Compare(ctx context.Context) (time.Duration, error) {
	var began, ended time.Time
	var reply any
	err := c.engine.Retry(ctx, func() (err error) {
		a := c.engine.Attempt()
		a.Call.Command = "TIME"
		began = time.Now()
		reply, err = a.Run(ctx, nil)
		ended = time.Now()
		return err
	})
	if err != nil {
		return 0, err
	}
	theirs, err := serverTime(reply)
	if err != nil {
		return 0, err
	}
	accuracy := ended.Sub(began) / 2
	ahead := theirs.Sub(began.Add(accuracy).Round(0)) // by the wall clock
	if c.offset.store(ahead, accuracy) {
		c.engine.Logger.Warn("redlatch: this machine's clock and the server's are apart: waiters of fair locks may lose their places",
			"server_ahead", ahead, "server_time_used", c.engine.ServerTime)
	}
	return ahead, nil
}

func serverTime(reply any) (time.Time, error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) != 2 {
		return time.Time{}, fmt.Errorf("%w to TIME", transport.ErrBadReply)
	}
	var n [2]int64
	for i, part := range parts {
		text, isText := part.(string)
		if raw, isRaw := part.([]byte); isRaw {
			text, isText = string(raw), true
		}
		var err error
		if n[i], err = strconv.ParseInt(text, 10, 64); err != nil || !isText {
			return time.Time{}, fmt.Errorf("%w to TIME", transport.ErrBadReply)
		}
	}
	return time.Unix(n[0], n[1]*1000), nil
}

// Keep sees to it that the clocks are compared once a minute, in the
// background. As long as scripts are to be given the server's time and it is not
// known, it waits for the comparison that is under way.
func (c *Clock) Keep(ctx context.Context) {
	known, over := c.refresh()
	if over == nil || known || !c.engine.ServerTime {
		return
	}
	// Half of what a call may take, so that the call itself has the other half.
	patience := time.NewTimer(c.engine.Command / 2)
	defer patience.Stop()
	select {
	case <-over:
	case <-patience.C:
	case <-ctx.Done():
	case <-c.engine.Closing():
	}
}

// Refresh is Keep for callers that never wait.
func (c *Clock) Refresh() { c.refresh() }

// refresh begins a comparison when it is time for one. It returns whether there was one before,
// and what is closed when the one under way is over, if one is.
func (c *Clock) refresh() (known bool, over <-chan struct{}) {
	due, known, over := c.offset.begin(time.Now())
	if due && !c.engine.Go(c.compare) {
		c.offset.end(time.Now(), false)
	}
	return known, over
}

// compare is a comparison in the background. A server that is away is asked again
// by the next call that needs its time; one that refuses, a minute later.
func (c *Clock) compare() {
	ctx, cancel := c.engine.Open(context.Background())
	defer cancel()
	_, err := c.Compare(ctx)
	if err != nil && !c.engine.Lacks("+time", "the server's clock cannot be read, and not be compared with this machine's", err) {
		c.engine.Logger.Info("redlatch: the server's clock cannot be read", "error", err)
	}
	c.offset.end(time.Now(), !Retryable(err))
}
