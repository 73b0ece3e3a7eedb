package engine

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/redlatch/redlatch/codec"
)

const (
	// clockFresh is how long a comparison of the clocks is good for.
	clockFresh = time.Minute
	// clockApart is how far apart the clocks may be before that is worth a warning.
	clockApart = time.Second
)

// clockOffset is how far the server's clock is ahead of this machine's.
type clockOffset struct {
	mu     sync.Mutex // guards what follows; not held while the server is asked
	ahead  time.Duration
	known  bool          // there was a comparison
	at     time.Time     // of the last one, or of a refusal; zero: neither
	asking chan struct{} // closed when the one under way is over; nil: none is
	apart  bool          // the clocks were apart when last compared
}

func (c *clockOffset) load() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead
}

// begin reports whether it is time for a comparison, whether there was one before,
// and what is closed when the one under way is over, if one is. Whoever is told
// that it is time must call end.
func (c *clockOffset) begin(now time.Time) (due, known bool, over <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asking == nil && (c.at.IsZero() || now.Sub(c.at) >= clockFresh) {
		due, c.asking = true, make(chan struct{})
	}
	return due, c.known, c.asking
}

// end ends what begin began. Without an answer the next to come begins anew.
func (c *clockOffset) end(now time.Time, answered bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.asking)
	c.asking = nil
	if answered {
		c.at = now
	}
}

// store takes a comparison in, and reports whether the clocks have come apart.
func (c *clockOffset) store(ahead, accuracy time.Duration) (news bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	apart := ahead.Abs()-accuracy > clockApart
	news = apart && !c.apart
	c.ahead, c.apart, c.known = ahead, apart, true
	return news
}

// NowMillis returns the time that scripts are told, in milliseconds since 1970: this
// machine's, as Redisson's is its own machine's, or the server's as far as it is
// known, when that was asked for.
func (e *Engine) NowMillis() int64 {
	now := time.Now()
	if e.ServerTime {
		now = now.Add(e.clock.load())
	}
	return now.UnixMilli()
}

// CompareClocks asks for the server's time and returns how far it is ahead of this
// machine's, to half of the time that took.
func (e *Engine) CompareClocks(ctx context.Context) (time.Duration, error) {
	var began, ended time.Time
	var reply any
	err := e.Retry(ctx, func() (err error) {
		a := e.Attempt()
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
	if e.clock.store(ahead, accuracy) {
		e.Logger.Warn("redlatch: this machine's clock and the server's are apart: waiters of fair locks may lose their places",
			"server_ahead", ahead, "server_time_used", e.ServerTime)
	}
	return ahead, nil
}

func serverTime(reply any) (time.Time, error) {
	parts, ok := reply.([]any)
	if !ok || len(parts) != 2 {
		return time.Time{}, fmt.Errorf("%w to TIME", codec.ErrBadReply)
	}
	var n [2]int64
	for i, part := range parts {
		text, isText := part.(string)
		if raw, isRaw := part.([]byte); isRaw {
			text, isText = string(raw), true
		}
		var err error
		if n[i], err = strconv.ParseInt(text, 10, 64); err != nil || !isText {
			return time.Time{}, fmt.Errorf("%w to TIME", codec.ErrBadReply)
		}
	}
	return time.Unix(n[0], n[1]*1000), nil
}

// KeepTime sees to it that the clocks are compared once a minute, in the
// background. As long as scripts are to be told the server's time and it is not
// known, it waits for the comparison that is under way.
func (e *Engine) KeepTime(ctx context.Context) {
	due, known, over := e.clock.begin(time.Now())
	if due && !e.Go(e.compare) {
		e.clock.end(time.Now(), false)
	}
	if over == nil || known || !e.ServerTime {
		return
	}
	// Half of what a call may take, so that the call itself has the other half.
	patience := time.NewTimer(e.Command / 2)
	defer patience.Stop()
	select {
	case <-over:
	case <-patience.C:
	case <-ctx.Done():
	case <-e.Closing():
	}
}

// compare is a comparison in the background. A server that is away is asked again
// by the next who needs its time; one that refuses, a minute later.
func (e *Engine) compare() {
	ctx, cancel := e.Open(context.Background())
	defer cancel()
	_, err := e.CompareClocks(ctx)
	if err != nil && !e.Lacks("+time", "the server's clock cannot be read, and not be compared with this machine's", err) {
		e.Logger.Info("redlatch: the server's clock cannot be read", "error", err)
	}
	e.clock.end(time.Now(), !retryable(err))
}

// CountCommand is the subcommand of PUBSUB that counts those who listen to what
// scripts publish.
func (e *Engine) CountCommand() any {
	if e.publish == any("SPUBLISH") {
		return shardNumSub
	}
	return numSub
}

// Boxed once.
var numSub, shardNumSub any = "NUMSUB", "SHARDNUMSUB"
