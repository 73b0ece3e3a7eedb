package mux_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

// executorEnv sets the duration of TestCallersThatReadGetTheirOwnReplies, such as 60s. Default 5 s.
const executorEnv = "REDLATCH_EXECUTOR"

var echo = transport.NewScript("echo", "return ARGV[1]")

// leaders makes calls, most of them with Lead.
type leaders struct {
	m            *mux.Mux
	stop         atomic.Bool
	starts, runs atomic.Int64

	replies, notSent, uncertain, abandoned atomic.Int64

	led atomic.Int64 // whose done ran on the caller's goroutine, or before Lead returned
}

// The load has contexts that end while callers read, abandoned calls, killed connections, servers that
// pause, idle times in which the reader takes over, and Close in the middle.
func TestCallersThatReadGetTheirOwnReplies(t *testing.T) {
	total := time.Duration(testlevel.Rounds(2, 5)) * time.Second
	if d, err := time.ParseDuration(os.Getenv(executorEnv)); err == nil {
		total = d
	}
	server := redistest.Start(t)
	levels := []int{1, 2, 3, 8, 64}
	for _, n := range levels {
		t.Run(strconv.Itoa(n), func(t *testing.T) {
			before := goleak.IgnoreCurrent()
			y := &leaders{m: mux.New(mux.Config{
				Dial: ledDial(server.Addr()), BackoffMin: time.Millisecond, BackoffMax: 5 * time.Millisecond,
			})}
			require.NoError(t, mux.Ping(t.Context(), y.m))
			var all sync.WaitGroup
			for g := range n {
				all.Go(func() { y.calls(t, g, n) })
			}
			trouble(t, server, total/time.Duration(len(levels)))
			y.stop.Store(true)
			all.Wait()
			for range 8 {
				all.Go(func() { y.untilClosed(t) })
			}
			time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond)
			require.NoError(t, y.m.Close())
			all.Wait()
			y.judge(t, n == 1) // whether calls of several are ever alone is chance
			goleak.VerifyNone(t, before)
		})
	}
}

// trouble kills and pauses the connections to server for a while.
func trouble(t *testing.T, server *redistest.Server, d time.Duration) {
	t.Helper()
	admin, err := redis.Dial("tcp", server.Addr())
	require.NoError(t, err)
	defer func() { _ = admin.Close() }()
	for end := time.Now().Add(d); time.Now().Before(end); {
		time.Sleep(time.Duration(5+rand.IntN(40)) * time.Millisecond)
		if rand.IntN(2) == 0 {
			_, err = admin.Do("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
		} else {
			_, err = admin.Do("CLIENT", "PAUSE", "6")
		}
		require.NoError(t, err)
	}
}

func (y *leaders) calls(t *testing.T, g, of int) {
	t.Helper()
	shared, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := 0; !y.stop.Load(); i++ {
		y.call(t, shared, fmt.Sprintf("%d:%d", g, i), i)
		switch {
		case of == 1 && i%200 == 199:
			time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // the reader takes over, or not
		case of > 1 && of <= 8 && rand.IntN(3) == 0:
			time.Sleep(time.Duration(rand.IntN(200*of)) * time.Microsecond) // the others are alone, or not
		}
	}
}

// call makes one call: with Lead and one of several contexts, or, in every second stretch, with Start.
func (y *leaders) call(t *testing.T, shared context.Context, text string, i int) {
	t.Helper()
	c := command("ECHO", text)
	if i%2 == 0 {
		c = eval(echo, 0, text)
	}
	c.Urgent, c.Vital = i%3 == 0, i%17 == 0
	came := make(chan outcome, 2)
	done := func(reply any, err error) {
		y.runs.Add(1)
		came <- outcome{reply, err}
	}
	y.starts.Add(1)
	cancel := context.CancelFunc(func() {})
	stretch := i / 50 % 2
	switch i % 5 * stretch {
	case 1:
		y.m.Start(c, done)
	case 4:
		var ctx context.Context
		ctx, cancel = context.WithTimeout(shared, time.Duration(rand.IntN(300))*time.Microsecond)
		y.m.Lead(ctx, c, done, waiter{})
	case 2:
		y.m.Lead(context.Background(), c, done, waiter{})
	case 3:
		interrupt := time.AfterFunc(time.Duration(rand.IntN(300))*time.Microsecond, func() { y.m.Interrupt(c) })
		y.m.Lead(shared, c, done, waiter{})
		interrupt.Stop()
	default:
		y.m.Lead(shared, c, done, waiter{})
	}
	defer cancel()
	if len(came) > 0 {
		y.led.Add(1)
	}
	y.wait(t, c, came, text, stretch*i)
}

// wait checks the outcome, or abandons the call.
func (y *leaders) wait(t *testing.T, c *transport.Call, came chan outcome, text string, i int) {
	t.Helper()
	var after <-chan time.Time
	if i%4 == 3 {
		after = time.After(time.Duration(rand.IntN(400)) * time.Microsecond)
	}
	select {
	case o := <-came:
		switch {
		case o.err == nil:
			if got, _ := o.reply.([]byte); string(got) != text {
				t.Errorf("a call got %q instead of %q", o.reply, text)
			}
			y.replies.Add(1)
		case errors.Is(o.err, transport.ErrNotSent):
			y.notSent.Add(1)
		case errors.Is(o.err, transport.ErrUncertain):
			y.uncertain.Add(1)
		default:
			t.Errorf("outside of the contract: %v", o.err)
		}
	case <-after:
		y.abandoned.Add(1)
		if !c.Abandon() {
			return
		}
		if o := await(t, came); !errors.Is(o.err, transport.ErrNotSent) {
			t.Errorf("a withdrawn call ended with %v, %v", o.reply, o.err)
		}
	case <-time.After(patience):
		t.Error("a call is stuck")
		y.stop.Store(true)
	}
}

// untilClosed makes calls until Close.
func (y *leaders) untilClosed(t *testing.T) {
	t.Helper()
	for {
		y.starts.Add(1)
		came := make(chan outcome, 2)
		y.m.Lead(t.Context(), command("ECHO", "x"), func(reply any, err error) {
			y.runs.Add(1)
			came <- outcome{reply, err}
		}, waiter{})
		select {
		case o := <-came:
			if errors.Is(o.err, transport.ErrClosed) {
				return
			}
		case <-time.After(patience):
			t.Error("a call is stuck in Close")
			return
		}
	}
}

// judge requires that each call has ended once.
func (y *leaders) judge(t *testing.T, leads bool) {
	t.Helper()
	assert.Equal(t, y.starts.Load(), y.runs.Load(), "each done runs once")
	assert.NotZero(t, y.replies.Load())
	if leads {
		assert.NotZero(t, y.led.Load(), "nothing was led")
	}
	t.Logf("%d calls: %d led, %d replies, %d left, %d not sent, %d uncertain",
		y.starts.Load(), y.led.Load(), y.replies.Load(), y.abandoned.Load(), y.notSent.Load(), y.uncertain.Load())
}
