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
	// clockFresh is how long a clock comparison is valid.
	clockFresh = time.Minute
	// clockApart is the smallest difference that is logged.
	clockApart = time.Second
)

// Clock provides the time that is sent to scripts, and compares this machine's clock with the server's. All methods are
// safe for concurrent use.
type Clock struct {
	engine *Engine

	mu       sync.Mutex    // guards the fields below; not held during I/O
	ahead    time.Duration // how far the server's clock is ahead of this machine's
	accuracy time.Duration // maximum error of ahead
	known    bool
	at       time.Time     // time of the last comparison or refusal
	asking   chan struct{} // closed when the current comparison ends
	apart    bool          // the clocks were apart at the last comparison
}

// store records a comparison and reports whether the clocks have just diverged. It ignores a much less accurate
// comparison that agrees with the last one, so that a slow request does not move the clock.
func (c *Clock) store(ahead, accuracy time.Duration) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	apart := ahead.Abs()-accuracy > clockApart
	news = apart && !c.apart
	if c.known && accuracy > 2*c.accuracy && (ahead-c.ahead).Abs() <= accuracy+c.accuracy {
		c.accuracy = 2*c.accuracy + time.Millisecond // clocks drift
	} else {
		c.ahead, c.accuracy = ahead, accuracy
	}
	c.apart, c.known = apart, true
	return news
}

// NowMillis returns the time for scripts in Unix milliseconds: this machine's time or, with Config.ServerTime, the
// server's.
func (c *Clock) NowMillis() int64 {
	now := time.Now()
	if c.engine.ServerTime {
		c.mu.Lock()
		now = now.Add(c.ahead)
		c.mu.Unlock()
	}
	return now.UnixMilli()
}

// Offset is like Compare, but for callers outside the engine.
func (c *Clock) Offset(ctx context.Context) (time.Duration, error) {
	if err := c.engine.Enter(); err != nil {
		return 0, err
	}
	defer c.engine.Leave()
	return c.Compare(ctx)
}

// Compare returns how far the server's clock is ahead of this machine's. The error is at most half the round-trip time.
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
	if c.store(ahead, accuracy) {
		c.engine.Logger.Warn("redlatch: this machine's clock differs from the server's: waiters of fair locks may lose their places",
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

// Keep starts comparing the clocks in the background if the last comparison is more than a minute old. With
// Config.ServerTime, it waits for the first comparison.
func (c *Clock) Keep(ctx context.Context) {
	known, over := c.refresh()
	if over == nil || known || !c.engine.ServerTime {
		return
	}
	// Leave half of the command timeout to the call itself.
	patience := time.NewTimer(c.engine.Command / 2)
	defer patience.Stop()
	select {
	case <-over:
	case <-patience.C:
	case <-ctx.Done():
	case <-c.engine.Closing():
	}
}

// Refresh is like Keep, but it never waits.
func (c *Clock) Refresh() { c.refresh() }

// refresh begins a comparison if one is due. It returns whether the offset is known, and a channel that is closed when
// the current comparison ends.
func (c *Clock) refresh() (known bool, over <-chan struct{}) {
	c.mu.Lock()
	due := c.asking == nil && (c.at.IsZero() || time.Since(c.at) >= clockFresh)
	if due {
		c.asking = make(chan struct{})
	}
	known, over = c.known, c.asking
	c.mu.Unlock()
	if due && !c.engine.Go(c.compare) {
		c.end(false)
	}
	return known, over
}

// compare runs a comparison. If the server refuses it, the next comparison is made a minute later.
func (c *Clock) compare() {
	ctx, cancel := c.engine.Open(context.Background())
	defer cancel()
	_, err := c.Compare(ctx)
	if err != nil && !c.engine.Lacks("+time", "cannot read the server's clock to compare it with this machine's", err) {
		c.engine.Logger.Info("redlatch: cannot read the server's clock", "error", err)
	}
	c.end(!Retryable(err))
}

func (c *Clock) end(answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.asking)
	c.asking = nil
	if answered {
		c.at = time.Now()
	}
}
