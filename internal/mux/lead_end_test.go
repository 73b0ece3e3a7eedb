package mux_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

func TestCloseInterruptsReadingCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := ledBy(t, slow())
		l := begin(t.Context(), m, command("SLOW"))
		require.True(t, l.reads())
		began := time.Now()
		require.NoError(t, m.Close())
		require.False(t, l.reads(), "Close waits for it")
		o := await(t, l.came)
		require.ErrorIs(t, o.err, transport.ErrUncertain)
		require.ErrorIs(t, o.err, transport.ErrClosed)
		assert.Zero(t, time.Since(began))
		require.ErrorIs(t, await(t, lead(t.Context(), m, command("ECHO"))).err, transport.ErrClosed)
	})
}

func TestCloseWaitsForReadTokenHolder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := ledBy(t, slow())
		go m.Lead(t.Context(), command("SLOW"), func(any, error) {}, waiter{started: func() { time.Sleep(time.Minute) }})
		synctest.Wait()
		began := time.Now()
		require.NoError(t, m.Close())
		require.Equal(t, time.Minute, time.Since(began))
	})
}

func TestReadingCallerLeavesDemotedServer(t *testing.T) {
	onLed(t, newPeer().answer(map[string]string{"WRITE": readOnly}), func(p *peer, m *mux.Mux) {
		t := p.t
		lost := m.Lost()
		came := lead(t.Context(), m, command("WRITE"))
		require.Len(t, came, 1)
		require.True(t, transport.IsCode((<-came).err, "READONLY"))
		<-lost
		require.NoError(t, await(t, lead(t.Context(), m, command("ECHO", "x"))).err)
		assert.Equal(t, 2, p.dialed())
	})
}

func TestFenceAnsweredAfterReadingCallersReply(t *testing.T) {
	onLed(t, slow(), func(p *peer, m *mux.Mux) {
		t := p.t
		old := command("ECHO", "old")
		require.NoError(t, await(t, lead(t.Context(), m, old)).err)
		l := begin(t.Context(), m, command("SLOW"))
		require.True(t, l.reads())
		fenced := make(chan error, 1)
		go func() { fenced <- m.Fence(t.Context(), old) }()
		synctest.Wait()
		require.Empty(t, fenced)
		p.Say(1, ok)
		require.NoError(t, <-fenced)
		require.NoError(t, await(t, l.came).err)
		for _, c := range p.commands() {
			require.NotContains(t, c, "KILL")
		}
	})
}

func TestCallOnUnreadClosedConnectionMovesToNext(t *testing.T) {
	t.Parallel()
	for _, said := range []string{hangUp, ok, ok + hangUp} {
		synctest.Test(t, func(t *testing.T) {
			p := slow()
			m := ledBy(t, p)
			p.Say(1, said)
			time.Sleep(2 * time.Millisecond)
			c := command("ECHO", "x")
			o := await(t, lead(t.Context(), m, c))
			require.Equal(t, outcome{[]byte("ECHO x"), nil}, o, "it is not in doubt and does not get the unsolicited reply")
			assert.EqualValues(t, 102, c.Conn())
			assert.Equal(t, 2, p.dialed())
		})
	}
}

func TestClosedIdleConnectionIsDetected(t *testing.T) {
	onLed(t, slow(), func(p *peer, m *mux.Mux) {
		t := p.t
		ends := func(conn int) time.Duration {
			lost, began := m.Lost(), time.Now()
			p.Say(conn, hangUp)
			select {
			case <-lost:
			case <-time.After(patience):
			}
			return time.Since(began)
		}
		assert.LessOrEqual(t, ends(1), 250*time.Millisecond)
		settle(t, m)
		time.Sleep(time.Hour) // the reader takes over
		settle(t, m)
		assert.LessOrEqual(t, ends(2), 250*time.Millisecond)

		settle(t, m)
		time.Sleep(time.Hour)
		assert.Zero(t, ends(3), "the reader has been reading it for long")
	})
}

func TestUnsolicitedReplyAfterCallersReplyClosesConnection(t *testing.T) {
	t.Parallel()
	for _, more := range []string{ok, "$9\r\nhal"} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer().answer(map[string]string{"MORE": ok + more})
			m := ledBy(t, p)
			lost := m.Lost()
			came := lead(t.Context(), m, command("MORE"))
			require.Equal(t, outcome{"OK", nil}, await(t, came))
			<-lost
			require.Equal(t, outcome{[]byte("ECHO x"), nil}, await(t, lead(t.Context(), m, command("ECHO", "x"))))
			assert.Equal(t, 2, p.dialed())
		})
	}
}
