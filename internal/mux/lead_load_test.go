package mux_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

// upTo returns a random time.
func upTo(d time.Duration) time.Duration { return rand.N(d) }

// The load has contexts that end while callers read, interrupts, abandoned calls, connections that break,
// slow replies, idle times in which the reader takes over, and Close in the middle.
func TestCallersThatReadGetTheirOwnReplies(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 8, 64} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer()
			p.led, p.Delay = true, func() { time.Sleep(max(0, upTo(4*time.Millisecond)-3*time.Millisecond)) }
			p.on(func(_ int, args []string) (string, bool) { return hangUp, args[0] == "ECHO" && rand.IntN(100) == 0 })
			m := open(t, p.config())
			var all sync.WaitGroup
			var starts, runs, led atomic.Int64
			call := func(text string) error {
				starts.Add(1)
				return leadOne(t, m, text, &runs, &led)
			}
			for g := range n {
				all.Go(func() {
					for i := range 1000 / n {
						_ = call(fmt.Sprintf("%d:%d", g, i))
						if rand.IntN(20) == 0 {
							time.Sleep(upTo(300 * time.Millisecond)) // the reader takes over, or not
						}
					}
				})
			}
			all.Wait()
			assert.NotZero(t, led.Load(), "nothing was led")
			for g := range 8 {
				all.Go(func() {
					for closed := false; !closed; {
						closed = errors.Is(call(fmt.Sprint("late ", g)), transport.ErrClosed)
					}
				})
			}
			time.Sleep(upTo(time.Second))
			require.NoError(t, m.Close())
			all.Wait()
			time.Sleep(time.Second) // the peer ends
			assert.Equal(t, starts.Load(), runs.Load(), "each done runs once")
		})
	}
}

// leadOne makes a call, mostly with Lead, which it may interrupt or abandon, and checks its outcome.
func leadOne(t *testing.T, m *mux.Mux, text string, runs, led *atomic.Int64) error {
	t.Helper()
	c := command("ECHO", text)
	c.Urgent, c.Vital = rand.IntN(3) == 0, rand.IntN(17) == 0
	came := make(chan outcome, 2)
	done := func(reply any, err error) {
		runs.Add(1)
		came <- outcome{reply, err}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	switch rand.IntN(6) {
	case 0:
		m.Start(c, done)
	case 1:
		defer time.AfterFunc(upTo(time.Millisecond), cancel).Stop()
		m.Lead(ctx, c, done, waiter{})
	case 2:
		defer time.AfterFunc(upTo(time.Millisecond), func() { m.Interrupt(c) }).Stop()
		m.Lead(context.Background(), c, done, waiter{})
	default:
		m.Lead(ctx, c, done, waiter{})
		if len(came) > 0 {
			led.Add(1)
		}
	}
	if rand.IntN(8) == 0 {
		time.Sleep(upTo(time.Millisecond))
		c.Abandon()
	}
	o := await(t, came)
	switch {
	case o.err == nil:
		assert.Equal(t, "ECHO "+text, string(o.reply.([]byte)))
	case !errors.Is(o.err, transport.ErrNotSent) && !errors.Is(o.err, transport.ErrUncertain):
		assert.Fail(t, "outside of the contract", "%v", o.err)
	}
	return o.err
}
