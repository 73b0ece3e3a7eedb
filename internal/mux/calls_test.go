package mux_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

func TestUrgentCallsOvertakeQueuedCalls(t *testing.T) {
	onPeer(t, newPeer(), func(p *peer, m *mux.Mux) {
		t := p.t
		g := p.gate()
		require.NoError(t, mux.Ping(t.Context(), m))
		close(g.armed)
		var last <-chan outcome
		start(m, command("ECHO", "0"))
		synctest.Wait() // the writer is at the gate
		for _, name := range []string{"1", "2", "3"} {
			last = start(m, command("ECHO", name))
		}
		for _, name := range []string{"a", "b"} {
			c := command("ECHO", name)
			c.Urgent = true
			start(m, c)
		}
		close(g.gate)
		await(t, last)
		assert.Equal(t, []string{"ECHO 0", "ECHO a", "ECHO b", "ECHO 1", "ECHO 2", "ECHO 3"}, p.commands())
	})
}

func TestWithdrawnCallNeverRuns(t *testing.T) {
	onPeer(t, newPeer(), func(p *peer, m *mux.Mux) {
		t := p.t
		g := p.gate()
		require.NoError(t, mux.Ping(t.Context(), m))
		close(g.armed)
		first, c := start(m, command("ECHO", "1")), command("ECHO", "2")
		synctest.Wait()
		second := start(m, c)
		assert.True(t, c.Abandon())
		close(g.gate)
		require.NoError(t, await(t, first).err)
		assert.Equal(t, transport.ErrNotSent, await(t, second).err)
		assert.Equal(t, []string{"ECHO 1"}, p.commands())
	})
}

func TestLateReplyDoesNotDelayOtherCalls(t *testing.T) {
	onPeer(t, newPeer().answer(map[string]string{"SLOW": silence}), func(p *peer, m *mux.Mux) {
		t := p.t
		c := command("SLOW")
		gone, late := make(chan struct{}), make(chan outcome, 2)
		m.Start(c, func(reply any, err error) {
			<-gone // as no done should
			late <- outcome{reply, err}
		})
		synctest.Wait()
		require.False(t, c.Abandon())
		p.Say(1, ok)
		for range 3 {
			require.NoError(t, do(t, m, command("ECHO", "x")).err)
		}
		none(t, late)
		close(gone)
		assert.Equal(t, outcome{"OK", nil}, await(t, late))
	})
}

func TestUnsolicitedReplyClosesConnection(t *testing.T) {
	onPeer(t, newPeer().answer(map[string]string{"TWICE": ok + ok}), func(p *peer, m *mux.Mux) {
		t := p.t
		require.NoError(t, do(t, m, command("TWICE")).err)
		synctest.Wait()
		assert.Equal(t, outcome{[]byte("ECHO x"), nil}, do(t, m, command("ECHO", "x")), "not the reply too many")
		assert.Equal(t, 2, p.dialed())
	})
}

func TestServerErrorsAreReplies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPeer().answer(map[string]string{
			"ONE":  "-WRONGTYPE not a hash\r\n",
			"MANY": "*3\r\n:1\r\n-ERR inside\r\n*1\r\n-OOM deeper\r\n",
		})
		m := open(t, p.config())
		o := do(t, m, command("ONE"))
		assert.Equal(t, &transport.ServerError{Text: "WRONGTYPE not a hash"}, o.err)
		assert.Nil(t, o.reply)
		o = do(t, m, command("MANY"))
		require.NoError(t, o.err)
		assert.Equal(t, []any{
			int64(1), &transport.ServerError{Text: "ERR inside"},
			[]any{&transport.ServerError{Text: "OOM deeper"}},
		}, o.reply)
		assert.Equal(t, 1, p.dialed())
	})
}

func TestCloseFailsInFlightAndQueuedCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPeer().answer(map[string]string{"HANG": silence})
		g := p.gate()
		m := mux.New(p.config())
		require.NoError(t, mux.Ping(t.Context(), m))
		flying := start(m, command("HANG"))
		synctest.Wait()
		close(g.armed)
		gated := start(m, command("HANG"))
		synctest.Wait()
		queued := start(m, command("ECHO", "x"))
		go func() {
			time.Sleep(time.Second)
			close(g.gate)
		}()
		require.NoError(t, m.Close())
		for _, o := range []outcome{<-flying, <-gated} {
			assert.ErrorIs(t, o.err, transport.ErrUncertain)
			assert.ErrorIs(t, o.err, transport.ErrClosed)
			assert.NotErrorIs(t, o.err, transport.ErrNotSent)
		}
		for _, came := range []<-chan outcome{queued, start(m, command("ECHO", "after"))} {
			o := <-came
			assert.ErrorIs(t, o.err, transport.ErrNotSent)
			assert.ErrorIs(t, o.err, transport.ErrClosed)
			assert.NotErrorIs(t, o.err, transport.ErrUncertain)
		}
		require.NoError(t, m.Close())
		require.ErrorIs(t, mux.Ping(t.Context(), m), transport.ErrClosed)
		assert.Equal(t, []string{"HANG"}, p.commands())
	})
}

func TestCloseInterruptsDialAndPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		waits := func(ctx context.Context) (redis.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		m := mux.New(mux.Config{Dial: waits, DialTimeout: time.Hour})
		dialling := start(m, command("ECHO", "x"))
		synctest.Wait()
		require.NoError(t, m.Close())
		assert.ErrorIs(t, await(t, dialling).err, transport.ErrClosed)
		assert.Zero(t, time.Since(began))

		p := newPeer()
		p.Refuse(context.DeadlineExceeded)
		m = mux.New(p.config())
		for range 10 { // the pauses grow
			require.Error(t, do(t, m, command("ECHO", "x")).err)
		}
		began = time.Now()
		pausing := start(m, command("ECHO", "x"))
		synctest.Wait()
		require.NoError(t, m.Close())
		assert.ErrorIs(t, await(t, pausing).err, transport.ErrClosed)
		assert.Zero(t, time.Since(began))
	})
}

func TestReconnectIsReportedExceptFirstConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var again atomic.Int32
		p := newPeer().answer(map[string]string{"BREAK": hangUp})
		cfg := p.config()
		var m *mux.Mux
		cfg.OnReconnect = func() {
			again.Add(1)
			m.Start(command("ECHO", "hook"), func(any, error) {})
		}
		m = open(t, cfg)
		news := m.Reconnected()
		require.NoError(t, mux.Ping(t.Context(), m))
		for i := range int32(3) {
			select {
			case <-news:
				t.Fatal("no reconnect yet")
			default:
			}
			require.Error(t, do(t, m, command("BREAK")).err)
			require.NoError(t, do(t, m, command("ECHO", "x")).err)
			synctest.Wait()
			assert.Equal(t, i+1, again.Load())
			<-news
			news = m.Reconnected()
		}
	})
}

func TestLostConnectionIsReportedImmediately(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var notified atomic.Int32
		p := newPeer().answer(map[string]string{"BREAK": hangUp})
		cfg := p.config()
		cfg.OnLost = func() { notified.Add(1) }
		m := open(t, cfg)
		for i := range int32(3) {
			require.NoError(t, mux.Ping(t.Context(), m))
			lost := m.Lost()
			synctest.Wait()
			require.Equal(t, i, notified.Load())
			require.Error(t, do(t, m, command("BREAK")).err)
			<-lost // does not reconnect
			synctest.Wait()
			require.Equal(t, i+1, notified.Load())
		}
		lost := m.Lost()
		require.NoError(t, mux.Ping(t.Context(), m))
		require.NoError(t, m.Close())
		<-lost
		require.EqualValues(t, 3, notified.Load(), "closing it is not a loss")
	})
}
