package mux_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/respconn"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/schedule"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

// The kinds of server for bursts.
const (
	calm    = iota // it replies immediately
	tardy          // some replies take a long time
	demoted        // it becomes a replica
	faulty         // it also becomes a replica, and connections break
	servers
)

// soon is longer than all yields during a call, and shorter than any timer in a Mux.
const soon = time.Millisecond

// A burst of callers overlaps with the time when the first one may read, and the last burst overlaps with Close.
// Contexts end, and callers are interrupted, at any time. Connections yield before each write, read and look.
func TestEachCallEndsOnceInEverySchedule(t *testing.T) {
	var led atomic.Int64
	schedule.Run(t, testlevel.Rounds(200, 3000), func(t *testing.T, s *schedule.Schedule) {
		t.Helper()
		a := s.Actor("main")
		b := &bursts{t: t, s: s, led: &led, server: a.Pick(servers), script: transport.NewScript("s", "x")}
		p := b.peer()
		cfg := p.config()
		cfg.ReplyLimit, cfg.Gone = 50*time.Millisecond, func() bool { return false }
		late, calls := s.Actor("late"), 0
		cfg.OnReconnect = func() {
			calls++
			late.Sleep(time.Duration(late.Pick(2)) * 20 * time.Millisecond)
		}
		cfg.OnLost = func() {
			cfg.OnReconnect()
			assert.GreaterOrEqual(t, b.server, demoted, "no connection breaks but at Close")
		}
		b.m = mux.New(cfg)
		for i := range 3 {
			for n := range 9 + a.Pick(3) {
				b.call(a, fmt.Sprint("settle-", i, "-", n), false)
			}
			a.Sleep(time.Duration(a.Pick(3)) * 125 * time.Millisecond)
			if b.closing = i == 2; b.closing {
				for n := range 2 {
					s.Go(fmt.Sprint("closer ", n), func(a *schedule.Actor) {
						a.Yield()
						assert.NoError(t, b.m.Close())
					})
				}
			}
			for n := range 2 + a.Pick(3) {
				s.Go(fmt.Sprint("caller ", i, " ", n), func(a *schedule.Actor) {
					for again := range 1 + a.Pick(2) {
						b.call(a, fmt.Sprint("burst-", i, "-", n, "-", again), true)
					}
				})
			}
			s.Wait()
		}
		time.Sleep(time.Second) // the peer ends
	})
	assert.NotZero(t, led.Load(), "nothing was led")
}

type bursts struct {
	t       *testing.T
	s       *schedule.Schedule
	m       *mux.Mux
	server  int
	script  *transport.Script
	closing bool
	led     *atomic.Int64
	replies atomic.Int64
}

// peer returns a server that replies with the last argument, and the time.
func (b *bursts) peer() *peer {
	p, conns := newPeer(), 0
	p.Client = func(conn net.Conn) redis.Conn {
		conns++
		below := &yieldingSeen{newSeen(conn), b.s.Actor(fmt.Sprint("reader ", conns)), b.s.Actor(fmt.Sprint("writer ", conns))}
		c, _ := respconn.NewConn(below, 0).(redis.ConnWithTimeout)
		return &yielding{c, below.writer}
	}
	p.Delay = func() {
		a := b.s.Actor(fmt.Sprint("reply ", b.replies.Add(1)))
		if a.Yield(); b.server == tardy && a.Pick(4) == 0 {
			a.Sleep(20 * time.Millisecond)
		}
	}
	a := b.s.Actor("server")
	return p.on(func(_ int, args []string) (string, bool) {
		reply := redistest.Bulk(args[len(args)-1] + " " + strconv.FormatInt(time.Now().UnixNano(), 10))
		switch args[0] {
		case "PING", "CLIENT":
			return "", false
		case "ASKING":
			return ok, true
		case "EVALSHA":
			if a.Pick(2) == 0 {
				reply = noScript
			}
		}
		if b.server >= demoted && a.Pick(12) == 0 {
			reply = []string{readOnly, hangUp, reply + hangUp, "$9\r\nhal" + hangUp}[a.Pick(1+3*(b.server-demoted))]
		}
		return reply, true
	})
}

// yielding is a connection whose methods yield to other actors.
type yielding struct {
	redis.ConnWithTimeout
	writer *schedule.Actor // the goroutine with the write token
}

func (y *yielding) Unwrap() redis.Conn { return y.ConnWithTimeout }

func (y *yielding) Send(name string, args ...any) error {
	y.writer.Yield()
	return y.ConnWithTimeout.Send(name, args...)
}

func (y *yielding) Flush() error {
	y.writer.Yield()
	return y.ConnWithTimeout.Flush()
}

// yieldingSeen is the network connection below yielding.
type yieldingSeen struct {
	*seen
	reader, writer *schedule.Actor // the goroutines with the tokens
}

func (c *yieldingSeen) Read(p []byte) (int, error) {
	c.reader.Yield()
	return c.seen.Read(p)
}

func (c *yieldingSeen) Look() (bool, error) {
	c.writer.Yield()
	return c.seen.Look()
}

type ended struct {
	outcome
	at time.Time
}

// call makes a call and checks its outcome.
func (b *bursts) call(a *schedule.Actor, text string, free bool) {
	c := command("ECHO", text)
	if free && a.Pick(3) == 0 {
		c = eval(b.script, 0, text)
	}
	c.Urgent, c.Vital = a.Pick(3) == 0, a.Pick(9) == 0
	came := make(chan ended, 2)
	done := func(reply any, err error) { came <- ended{outcome{reply, err}, time.Now()} }
	abandoned := free && a.Pick(16) == 0
	if abandoned {
		c.Abandon()
	}
	began := time.Now()
	switch how := a.Pick(5); {
	case free && how == 0:
		b.m.Start(c, done)
	case free && how == 1:
		b.m.Ask(c, done)
	default:
		b.lead(a, c, done, free)
		b.led.Add(int64(len(came)))
	}
	if a.Yield(); free && a.Pick(6) == 0 {
		c.Abandon()
		abandoned = true
	}
	select {
	case o := <-came:
		b.judge(text, began, o, abandoned)
	case <-time.After(patience):
		assert.Fail(b.t, "done has not run")
	}
	if free {
		b.rest(a, c)
	}
	assert.Empty(b.t, came)
}

// lead leads a call and may stop waiting for it.
func (b *bursts) lead(a *schedule.Actor, c *transport.Call, done transport.Done, free bool) {
	ctx, cancel := context.WithCancel(b.t.Context())
	var left atomic.Bool
	var stopped atomic.Int64
	began := time.Now().UnixNano()
	if how := a.Pick(3); free && how > 0 {
		b.s.Go(fmt.Sprint("stop ", c.Args), func(a *schedule.Actor) {
			a.Yield()
			stopped.Store(time.Now().UnixNano())
			if how == 1 {
				cancel()
				return
			}
			left.Store(true)
			b.m.Interrupt(c)
		})
	}
	b.m.Lead(ctx, c, done, waiter{started: a.Yield, left: left.Load})
	cancel()
	if at := stopped.Load(); at != 0 {
		assert.Less(b.t, time.Since(time.Unix(0, max(began, at))), soon, "the caller did not wait any longer")
	}
}

func (b *bursts) judge(text string, began time.Time, o ended, abandoned bool) {
	if o.err == nil {
		reply, _ := o.reply.([]byte)
		got, at, _ := strings.Cut(string(reply), " ")
		nanos, err := strconv.ParseInt(at, 10, 64)
		assert.NoError(b.t, err)
		assert.Equal(b.t, text, got)
		assert.True(b.t, b.server > tardy || o.at.Sub(time.Unix(0, nanos)) < soon, "from the server's reply")
		assert.True(b.t, b.server > calm || o.at.Sub(began) < soon, "from the start")
		return
	}
	switch {
	case b.server >= demoted && transport.IsCode(o.err, "READONLY"):
	case b.server == faulty:
		assert.True(b.t, errors.Is(o.err, transport.ErrNotSent) || errors.Is(o.err, transport.ErrUncertain))
	case b.closing:
		assert.True(b.t, abandoned || errors.Is(o.err, transport.ErrClosed), "%v", o.err)
	default:
		assert.True(b.t, abandoned && errors.Is(o.err, transport.ErrNotSent), "%v", o.err)
	}
}

// rest uses other methods of the Mux.
func (b *bursts) rest(a *schedule.Actor, c *transport.Call) {
	switch a.Pick(5) {
	case 0:
		b.m.Lost()
	case 1:
		b.m.Reconnected()
	case 2, 3:
		ctx, cancel := context.WithTimeout(b.t.Context(), time.Second)
		defer cancel()
		err := b.m.Fence(ctx, c)
		assert.True(b.t, b.server != calm || b.closing || (err == nil) == (c.Conn() != 0), "%v", err)
	}
}
