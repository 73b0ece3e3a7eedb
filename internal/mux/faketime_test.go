package mux_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

func TestConnectionClosedWhenOldestCallExceedsReplyLimit(t *testing.T) {
	onPeer(t, newPeer().answer(map[string]string{"HANG": silence}), func(p *peer, m *mux.Mux) {
		t := p.t
		require.NoError(t, mux.Ping(t.Context(), m))

		time.Sleep(7 * time.Second) // the guard's timer is half-way through
		began := time.Now()
		hung := start(m, command("HANG"))
		synctest.Wait()
		time.Sleep(4 * time.Second)
		behind := start(m, command("HANG"))

		o := await(t, hung)
		require.ErrorIs(t, o.err, transport.ErrUncertain)
		assert.ErrorContains(t, o.err, "no reply within 10s")
		assert.Equal(t, 10*time.Second, time.Since(began))
		assert.ErrorIs(t, await(t, behind).err, transport.ErrUncertain, "it was sent on the same connection")
		assert.NoError(t, do(t, m, command("ECHO", "y")).err)
		assert.Equal(t, 2, p.dialed())
	})
}

func TestReplyLimitAppliesToOldestCall(t *testing.T) {
	onPeer(t, newPeer().answer(map[string]string{"HANG": silence}), func(p *peer, m *mux.Mux) {
		t := p.t
		first := start(m, command("HANG"))
		synctest.Wait()
		time.Sleep(9 * time.Second)
		p.Say(1, ok)
		require.NoError(t, await(t, first).err)

		time.Sleep(time.Hour)
		assert.NoError(t, do(t, m, command("ECHO", "x")).err)
		assert.Equal(t, 1, p.dialed(), "an idle connection is kept")
	})
}

func TestRespondingConnectionStaysOpen(t *testing.T) {
	onPeer(t, newPeer().answer(map[string]string{"SLOW": silence}), func(p *peer, m *mux.Mux) {
		t := p.t
		var all []<-chan outcome
		for range 5 {
			all = append(all, start(m, command("SLOW")))
		}
		synctest.Wait()
		for _, came := range all[:4] {
			time.Sleep(9 * time.Second)
			p.Say(1, ok)
			require.NoError(t, await(t, came).err)
		}
		last := time.Now()
		require.ErrorIs(t, await(t, all[4]).err, transport.ErrUncertain)
		assert.Equal(t, 10*time.Second, time.Since(last))
	})
}

func TestReplyLimitCoversWrites(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPeer().answer(map[string]string{"STALL": silence})
		m := open(t, p.config())
		stalled := start(m, command("STALL"))
		synctest.Wait()
		defer p.StopReading()()
		time.Sleep(time.Second)
		written := start(m, command("ECHO", "blocks the writer"))
		synctest.Wait()
		queued := start(m, command("ECHO", "waits behind it"))

		began := time.Now()
		assert.ErrorIs(t, await(t, stalled).err, transport.ErrUncertain)
		assert.ErrorIs(t, await(t, written).err, transport.ErrUncertain)
		assert.Equal(t, 9*time.Second, time.Since(began))
		o := await(t, queued)
		assert.NoError(t, o.err, "it was not written, so it goes to the next connection")
		assert.Equal(t, []byte("ECHO waits behind it"), o.reply)
	})
}

func TestFailedDialFailsQueuedCallsThenPauses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		refused := errors.New("connection refused")
		p := newPeer()
		p.Refuse(refused)
		m := open(t, p.config())
		var pauses []time.Duration
		for last := time.Now(); len(pauses) < 12; last = time.Now() {
			o := do(t, m, command("ECHO", "x"))
			require.ErrorIs(t, o.err, transport.ErrNotSent)
			require.ErrorIs(t, o.err, refused)
			pauses = append(pauses, time.Since(last))
		}
		assert.Zero(t, pauses[0], "the first dial waits for nothing")
		want := 20 * time.Millisecond
		for i, pause := range pauses[1:] {
			assert.GreaterOrEqual(t, pause, want/2, "pause %d", i)
			assert.LessOrEqual(t, pause, want, "pause %d", i)
			want = min(2*want, time.Second)
		}

		dials := p.dialed()
		time.Sleep(time.Hour)
		assert.Equal(t, dials, p.dialed(), "no dial without a waiting call")

		p.Refuse(nil)
		began := time.Now()
		require.NoError(t, do(t, m, command("ECHO", "x")).err)
		assert.Zero(t, time.Since(began), "the pause ended long ago")

		p.Refuse(refused)
		p.Say(dials+1, hangUp)
		synctest.Wait()
		require.Error(t, do(t, m, command("ECHO", "x")).err)
		began = time.Now()
		require.Error(t, do(t, m, command("ECHO", "x")).err)
		assert.LessOrEqual(t, time.Since(began), 20*time.Millisecond, "a connection that worked resets the pause")
	})
}

func TestCallsDuringPauseWaitForNextDial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPeer()
		p.Refuse(errors.New("refused"))
		m := open(t, p.config())
		for range 10 { // up to a pause of a second
			require.Error(t, do(t, m, command("ECHO", "x")).err)
		}
		p.Refuse(nil)
		began := time.Now()
		withdrawn := command("ECHO", "withdrawn")
		first, second := start(m, command("ECHO", "1")), start(m, withdrawn)
		assert.True(t, withdrawn.Abandon())
		require.NoError(t, await(t, first).err)
		assert.ErrorIs(t, await(t, second).err, transport.ErrNotSent)
		assert.GreaterOrEqual(t, time.Since(began), time.Second/2)
		assert.LessOrEqual(t, time.Since(began), time.Second)
		assert.Equal(t, []string{"ECHO 1"}, p.commands())
	})
}

func TestUnresponsiveServerIsRedialedAfterPauses(t *testing.T) {
	onPeer(t, newPeer().answer(map[string]string{"ECHO": hangUp}), func(p *peer, m *mux.Mux) {
		t := p.t
		began := time.Now()
		for range 20 {
			require.ErrorIs(t, do(t, m, command("ECHO", "x")).err, transport.ErrUncertain)
		}
		assert.Greater(t, time.Since(began), 5*time.Second)
	})
}

func TestWorkingConnectionIsReplacedImmediately(t *testing.T) {
	onPeer(t, newPeer().answer(map[string]string{"BREAK": hangUp}), func(p *peer, m *mux.Mux) {
		t := p.t
		began := time.Now()
		for range 20 {
			require.NoError(t, do(t, m, command("ECHO", "x")).err)
			require.ErrorIs(t, do(t, m, command("BREAK")).err, transport.ErrUncertain)
		}
		assert.Zero(t, time.Since(began))
		assert.Equal(t, 20, p.dialed())
	})
}

func TestDialTimeoutAppliesWhenDialIgnoresContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inner := newPeer()
		slow := func(context.Context) (redis.Conn, error) {
			time.Sleep(30 * time.Second)
			return inner.Dial(context.Background())
		}
		m := open(t, mux.Config{Dial: slow})
		began := time.Now()
		o := do(t, m, command("ECHO", "x"))
		require.ErrorIs(t, o.err, transport.ErrNotSent)
		require.ErrorIs(t, o.err, context.DeadlineExceeded)
		assert.ErrorContains(t, o.err, "no connection within 5s")
		assert.Equal(t, 5*time.Second, time.Since(began))
		// The late connection must be closed: otherwise the bubble does not end.
	})
}

func TestDialTimeoutCoversHandshake(t *testing.T) {
	onPeer(t, newPeer().answer(map[string]string{"PING": silence}), func(p *peer, m *mux.Mux) {
		t := p.t
		began := time.Now()
		err := mux.Ping(t.Context(), m)
		require.ErrorIs(t, err, transport.ErrNotSent)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, 5*time.Second, time.Since(began))
	})
}
