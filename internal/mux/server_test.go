package mux_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/internal/test/testlevel"
	"github.com/redlatch/redlatch/transport"
)

func TestCallsWorkOnEveryServer(t *testing.T) {
	t.Parallel()
	redistest.EachServer(t, func(t *testing.T, target redistest.Target) {
		t.Helper()
		m := open(t, configFor(target.Addr()))
		require.NoError(t, mux.Ping(t.Context(), m))
		script := transport.NewScript("echo", "return {KEYS[1], ARGV[1], ARGV[2], false}")
		key := redistest.Key(t)
		for range 3 {
			o := do(t, m, eval(script, 1, key, "a", int64(5)))
			require.NoError(t, o.err)
			assert.Equal(t, []any{[]byte(key), []byte("a"), []byte("5"), nil}, o.reply)
		}
		o := do(t, m, eval(transport.NewScript("nil", "return nil"), 1, key))
		assert.Equal(t, outcome{}, o)
		target.Do(t, "SET", key, "text")
		o = do(t, m, command("HGET", key, "f"))
		assert.True(t, transport.IsCode(o.err, "WRONGTYPE"))
	})
}

func TestFrozenServerIsGivenUpAndFoundAgain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	cfg := configFor(server.Addr())
	cfg.ReplyLimit, cfg.DialTimeout = time.Second, time.Second
	m := open(t, cfg)
	eventually(t, m, "ECHO", "x")
	server.Pause()
	sent := do(t, m, command("INCR", "n"))
	assert.ErrorIs(t, sent.err, transport.ErrUncertain)
	o := do(t, m, command("INCR", "n"))
	assert.ErrorIs(t, o.err, transport.ErrNotSent, "no connection to a frozen server")
	server.Resume()
	assert.Equal(t, []byte("1"), eventually(t, m, "GET", "n"), "the first one ran after all")
}

func TestKilledConnectionMakesOnlyCallsInFlightUncertain(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	m := open(t, configFor(server.Addr()))
	blocker := command("BLPOP", "nothing", 0)
	first := start(m, blocker)
	require.Eventually(t, func() bool { return blocker.Conn() != 0 }, patience, time.Millisecond)
	behind := command("INCR", "n")
	second := start(m, behind)
	require.Eventually(t, func() bool { return behind.Conn() != 0 }, patience, time.Millisecond)
	server.Do(t, "CLIENT", "KILL", "ID", blocker.Conn())
	assert.ErrorIs(t, await(t, first).err, transport.ErrUncertain)
	assert.ErrorIs(t, await(t, second).err, transport.ErrUncertain)
	assert.NoError(t, do(t, m, command("ECHO", "x")).err)
}

// tally counts the outcomes of a load.
type tally struct {
	replies, notSent, uncertain, withdrawn, abandoned atomic.Int64
	wrong                                             atomic.Int64 // another call's reply
	odd                                               atomic.Int64 // an error outside of the contract
	twice                                             atomic.Int64 // done ran again
	refuted                                           atomic.Int64 // withdrawn, and sent all the same
}

var echo = transport.NewScript("echo", "return ARGV[1]")

// one runs one call, or withdraws it at a random moment, and returns when its
// done has run.
func (y *tally) one(m *mux.Mux, id string) {
	c := command("ECHO", id)
	if rand.IntN(2) == 0 {
		c = eval(echo, 0, id)
	}
	c.Urgent = rand.IntN(8) == 0
	var runs atomic.Int32
	finished := make(chan struct{})
	var withdrawn atomic.Bool
	var result outcome
	m.Start(c, func(reply any, err error) {
		if runs.Add(1) > 1 {
			y.twice.Add(1)
			return
		}
		result = outcome{reply, err}
		close(finished)
	})
	if rand.IntN(4) == 0 {
		if rand.IntN(2) == 0 {
			time.Sleep(time.Duration(rand.IntN(300)) * time.Microsecond)
		}
		if c.Abandon() {
			withdrawn.Store(true)
			y.withdrawn.Add(1)
		} else {
			y.abandoned.Add(1)
		}
	}
	<-finished
	y.count(result, id, withdrawn.Load())
}

func (y *tally) count(o outcome, id string, withdrawn bool) {
	notSent, uncertain := errors.Is(o.err, transport.ErrNotSent), errors.Is(o.err, transport.ErrUncertain)
	if withdrawn && !notSent {
		y.refuted.Add(1)
	}
	switch {
	case o.err == nil:
		y.replies.Add(1)
		if text, isText := o.reply.([]byte); !isText || string(text) != id {
			y.wrong.Add(1)
		}
	case notSent && !uncertain:
		y.notSent.Add(1)
	case uncertain && !notSent:
		y.uncertain.Add(1)
	default:
		y.odd.Add(1)
	}
}

func TestNoReplyReachesTheWrongCallerUnderKillsAndCancels(t *testing.T) {
	t.Parallel()
	const goroutines = 50
	each := testlevel.Rounds(200, 500)
	server := redistest.Start(t)
	for round := range testlevel.Rounds(1, 3) {
		m := open(t, configFor(server.Addr()))
		require.NoError(t, mux.Ping(t.Context(), m))
		stop := make(chan struct{})
		var killer, callers sync.WaitGroup
		kills := 0
		killer.Go(func() {
			tick := time.NewTicker(10 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				kills += server.KillClients(t, "normal")
				if rand.IntN(3) == 0 {
					server.Do(t, "SCRIPT", "FLUSH")
				}
			}
		})
		var y tally
		for g := range goroutines {
			callers.Go(func() {
				for i := range each {
					y.one(m, fmt.Sprintf("%d/%d/%d", round, g, i))
				}
			})
		}
		callers.Wait()
		close(stop)
		killer.Wait()
		require.NoError(t, m.Close())
		t.Logf("round %d: %d replies, %d not sent, %d uncertain; %d withdrawn, %d abandoned; %d kills", round,
			y.replies.Load(), y.notSent.Load(), y.uncertain.Load(), y.withdrawn.Load(), y.abandoned.Load(), kills)
		assert.Equal(t, int64(goroutines*each), y.replies.Load()+y.notSent.Load()+y.uncertain.Load())
		assert.Zero(t, y.wrong.Load(), "replies to the wrong caller")
		assert.Zero(t, y.odd.Load(), "errors outside of the contract")
		assert.Zero(t, y.twice.Load(), "done ran twice")
		assert.Zero(t, y.refuted.Load(), "withdrawn calls that were sent")
		assert.NotZero(t, y.uncertain.Load(), "the kills hit nothing")
		assert.NotZero(t, y.withdrawn.Load())
		assert.NotZero(t, y.abandoned.Load())
	}
}
