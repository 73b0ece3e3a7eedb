package mux_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

// slow returns a peer that does not answer SLOW.
func slow() *peer { return newPeer().answer(map[string]string{"SLOW": silence}) }

func TestOverlappingCallersUseReader(t *testing.T) {
	onLed(t, slow(), func(p *peer, m *mux.Mux) {
		t := p.t
		first := begin(t.Context(), m, command("SLOW"))
		require.True(t, first.reads())
		second := begin(t.Context(), m, command("SLOW"))
		require.False(t, second.reads())
		p.Say(1, ok)
		require.NoError(t, await(t, first.came).err)
		synctest.Wait()
		require.False(t, first.reads(), "it does not read for others")
		none(t, second.came)
		p.Say(1, ok)
		require.NoError(t, await(t, second.came).err)
		third := begin(t.Context(), m, command("SLOW"))
		require.False(t, third.reads())
		p.Say(1, ok)
		require.NoError(t, await(t, third.came).err)
		settle(t, m)
	})
}

func TestContextInterruptsReadingCaller(t *testing.T) {
	onLed(t, slow(), func(p *peer, m *mux.Mux) {
		t := p.t
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
			began := time.Now()
			came := lead(ctx, m, command("SLOW"))
			cancel()
			require.Equal(t, 30*time.Millisecond, time.Since(began))
			none(t, came)
			p.Say(1, ok)
			require.Equal(t, outcome{"OK", nil}, await(t, came), "the reader gets the reply")
			require.Equal(t, 30*time.Millisecond, time.Since(began), "at once")
			settle(t, m)
		}
		assert.Equal(t, 1, p.dialed(), "the connection is as it was")
	})
}

func TestContextEndedBetweenCallsInterruptsSecondRead(t *testing.T) {
	onLed(t, slow(), func(p *peer, m *mux.Mux) {
		t := p.t
		ctx, cancel := context.WithCancel(t.Context())
		require.Len(t, lead(ctx, m, command("ECHO", "1")), 1)
		other := begin(context.Background(), m, command("SLOW")) // which the end of ctx does not concern
		cancel()
		synctest.Wait()
		require.True(t, other.reads())
		p.Say(1, ok)
		require.NoError(t, await(t, other.came).err)
		<-other.back

		began := time.Now()
		came := lead(ctx, m, command("SLOW"))
		require.Zero(t, time.Since(began))
		p.Say(1, ok)
		require.NoError(t, await(t, came).err)
	})
}

// watched is a context that counts the functions that wait for its end.
type watched struct {
	context.Context
	done chan struct{}
	n    atomic.Int32
}

func newWatched() *watched { return &watched{Context: context.Background(), done: make(chan struct{})} }

func (w *watched) Done() <-chan struct{} { return w.done }

func (w *watched) AfterFunc(func()) (stop func() bool) {
	w.n.Add(1)
	return func() bool { w.n.Add(-1); return true }
}

func TestLeadStopsWatchingEarlierContexts(t *testing.T) {
	onLed(t, slow(), func(p *peer, m *mux.Mux) {
		t := p.t
		one, two := newWatched(), newWatched()
		for range 10 {
			for _, ctx := range []*watched{one, two} {
				require.NoError(t, await(t, lead(ctx, m, command("ECHO", "x"))).err)
				synctest.Wait()
				require.EqualValues(t, 1, ctx.n.Load(), "it was led")
			}
			require.Zero(t, one.n.Load())
		}
		require.NoError(t, m.Close())
		require.Zero(t, two.n.Load())
	})
}

func TestInterruptStopsOnlyItsCaller(t *testing.T) {
	onLed(t, slow(), func(p *peer, m *mux.Mux) {
		t := p.t
		call := command("SLOW")
		m.Interrupt(call) // nothing reads
		l := begin(t.Context(), m, call)
		m.Interrupt(command("SLOW")) // another call
		synctest.Wait()
		require.True(t, l.reads())
		m.Interrupt(call)
		m.Interrupt(call)
		synctest.Wait()
		require.False(t, l.reads())
		none(t, l.came)
		m.Interrupt(call) // too late
		p.Say(1, ok)
		require.Equal(t, outcome{"OK", nil}, await(t, l.came))
		settle(t, m)
		assert.Equal(t, 1, p.dialed())
	})
}

func TestLateInterruptDoesNotStopNextRead(t *testing.T) {
	onLed(t, slow(), func(p *peer, m *mux.Mux) {
		t := p.t
		call := command("ECHO", "1")
		m.Lead(t.Context(), call, func(any, error) { m.Interrupt(call) }, waiter{})
		next := begin(t.Context(), m, command("SLOW"))
		require.True(t, next.reads())
		p.Say(1, ok)
		require.NoError(t, await(t, next.came).err)
	})
}

func TestAbandonedCallerDoesNotRead(t *testing.T) {
	onLed(t, slow(), func(p *peer, m *mux.Mux) {
		t := p.t
		came, began := make(chan outcome, 2), time.Now()
		m.Lead(t.Context(), command("SLOW"), func(reply any, err error) { came <- outcome{reply, err} },
			waiter{left: func() bool { return true }})
		require.Zero(t, time.Since(began))
		p.Say(1, ok)
		require.Equal(t, outcome{"OK", nil}, await(t, came))
	})
}

func TestCallerReadsForAtMostOneSecond(t *testing.T) {
	onLed(t, slow(), func(p *peer, m *mux.Mux) {
		t := p.t
		began := time.Now()
		came := lead(t.Context(), m, command("SLOW"))
		require.InDelta(t, 0.75, time.Since(began).Seconds(), 0.25)
		time.Sleep(5 * time.Second)
		p.Say(1, ok)
		require.Equal(t, outcome{"OK", nil}, await(t, came))
		assert.Equal(t, 1, p.dialed())
	})
}

func TestCallerIsNotifiedAfterWrite(t *testing.T) {
	onLed(t, slow(), func(p *peer, m *mux.Mux) {
		t := p.t
		var next <-chan outcome
		came := make(chan outcome, 2)
		go m.Lead(t.Context(), command("SLOW"), func(reply any, err error) { came <- outcome{reply, err} },
			waiter{started: func() { next = start(m, command("SLOW", "next")) }})
		synctest.Wait()
		said := p.commands()
		require.Equal(t, []string{"SLOW", "SLOW next"}, said[len(said)-2:])
		none(t, came)
		p.Say(1, ok+":2\r\n")
		require.Equal(t, outcome{"OK", nil}, await(t, came))
		require.Equal(t, outcome{int64(2), nil}, await(t, next))
	})
}

// In a program with rare locks the reader takes over in between; the second call of a pair is led.
func TestRareCallersReadReplies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := ledBy(t, slow())
		for range 5 {
			time.Sleep(time.Second)
			require.NoError(t, await(t, lead(t.Context(), m, command("ECHO", "lock"))).err)
			synctest.Wait()
			require.Len(t, lead(t.Context(), m, command("ECHO", "unlock")), 1, "done has run when Lead returns")
		}
	})
}

func TestCallerLeavesLargeWritesToWriter(t *testing.T) {
	onLed(t, slow(), func(p *peer, m *mux.Mux) {
		t := p.t
		big := strings.Repeat("x", 4<<10)
		for _, arg := range []any{big, []byte(big)} {
			l := begin(t.Context(), m, command("SLOW", arg))
			require.False(t, l.reads())
			p.Say(1, ok)
			require.NoError(t, await(t, l.came).err)
			settle(t, m)
		}
	})
}

func TestBlockedDoneAffectsOnlyItsCaller(t *testing.T) {
	t.Parallel()
	oops := errors.New("oops")
	for name, done := range map[string]transport.Done{
		"panics":  func(any, error) { panic(oops) },
		"Goexits": func(any, error) { runtime.Goexit() },
	} {
		synctest.Test(t, func(t *testing.T) {
			p := slow()
			m := ledBy(t, p)
			var caught atomic.Value
			over := make(chan struct{})
			go func() {
				defer close(over)
				defer func() {
					if e, ok := recover().(error); ok {
						caught.Store(e)
					}
				}()
				m.Lead(t.Context(), command("ECHO", "1"), done, waiter{})
			}()
			<-over
			if name == "panics" {
				assert.Equal(t, oops, caught.Load())
			}
			o := await(t, lead(t.Context(), m, command("ECHO", "2")))
			require.NoError(t, o.err, name)
			require.Equal(t, []byte("ECHO 2"), o.reply, name)
			assert.Equal(t, 2, p.dialed(), name)
		})
	}
}

func TestWithdrawnCallIsNotLed(t *testing.T) {
	onLed(t, slow(), func(p *peer, m *mux.Mux) {
		t := p.t
		c := command("SLOW")
		require.True(t, c.Abandon())
		require.Equal(t, transport.ErrNotSent, await(t, lead(t.Context(), m, c)).err)
		assert.NotContains(t, p.commands(), "SLOW")
		settle(t, m)
	})
}
