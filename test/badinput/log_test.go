package badinput_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch"
	"github.com/redlatch/redlatch/rfairlock"
	"github.com/redlatch/redlatch/rlock"
	"github.com/redlatch/redlatch/transport"
)

// logLines is what was logged, a line each.
type logLines struct {
	mu    sync.Mutex // guards lines
	lines []string
}

// Write is part of io.Writer.
func (d *logLines) Write(line []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, string(line))
	return len(line), nil
}

func (d *logLines) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string(nil), d.lines...)
}

// A name of a mebibyte is a name, and so is an owner in a queue that another program has
// put there; a log must not repeat them.
func TestNoLogLineRepeatsALongNameOrError(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("n", mebibyte)
	dead := strings.Repeat("d", mebibyte)
	long := &transport.ServerError{Text: "ERR " + strings.Repeat("e", mebibyte)}
	beat := []any{int64(5000), []any{dead, "1"}, []any{}, int64(2)}
	for what, c := range map[string]struct {
		fake transport.Transport
		act  func(context.Context, *redlatch.Client) error
		want error
	}{
		"a lost lock": {newFake(), func(ctx context.Context, c *redlatch.Client) error {
			h, err := rlock.New(c, name).TryLock(ctx, rlock.WithLease(time.Second))
			time.Sleep(time.Minute)
			return errors.Join(err, h.Err())
		}, redlatch.ErrLost},
		"a renewal that fails": {&fake{target: "renew", reply: long}, func(ctx context.Context, c *redlatch.Client) error {
			h, err := rlock.New(c, name).TryLock(ctx)
			time.Sleep(time.Minute)
			return errors.Join(err, h.Err())
		}, redlatch.ErrLost},
		"a queue with a dead waiter": {&queueing{&fake{target: "fair_heartbeat", reply: beat}}, func(ctx context.Context, c *redlatch.Client) error {
			_, err := rfairlock.New(c, name).Lock(ctx, rlock.WithWait(5*time.Minute))
			return err
		}, redlatch.ErrNotAcquired},
		"a queue that cannot be looked after": {&queueing{&fake{target: "fair_heartbeat", reply: long}}, func(ctx context.Context, c *redlatch.Client) error {
			_, err := rfairlock.New(c, name).Lock(ctx, rlock.WithWait(time.Minute))
			return err
		}, redlatch.ErrNotAcquired},
	} {
		synctest.Test(t, func(t *testing.T) {
			log := &logLines{}
			client, err := redlatch.NewWithTransport(c.fake, redlatch.WithLogger(slog.New(slog.NewTextHandler(log, nil)).With("who", "us")))
			require.NoError(t, err)
			require.ErrorIs(t, c.act(t.Context(), client), c.want)
			require.NoError(t, client.Close())
			require.NotEmpty(t, log.all(), "%s is not logged", what)
			for _, line := range log.all() {
				require.Less(t, len(line), 8<<10, what)
				require.Contains(t, line, "who=us")
			}
		})
	}
}
