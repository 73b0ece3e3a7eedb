package mux_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

const noScript = "-NOSCRIPT no such script here\r\n"

func TestUnknownScriptIsResentWithSource(t *testing.T) {
	onPeer(t, newPeer().answer(map[string]string{"EVALSHA": noScript, "EVAL": ":7\r\n"}), func(p *peer, m *mux.Mux) {
		t := p.t
		s := transport.NewScript("s", "return 7")
		came := start(m, eval(s, 1, "k", "a", 5, int64(6)))
		assert.Equal(t, outcome{int64(7), nil}, await(t, came))
		assert.Equal(t, []string{"EVALSHA " + s.SHA() + " 1 k a 5 6", "EVAL return 7 1 k a 5 6"}, p.commands())
		synctest.Wait()
		none(t, came)
	})
}

func TestUnknownScriptIsResentOnlyOnce(t *testing.T) {
	onPeer(t, newPeer().answer(map[string]string{"EVALSHA": noScript, "EVAL": noScript, "GET": noScript}), func(p *peer, m *mux.Mux) {
		t := p.t
		o := do(t, m, eval(transport.NewScript("s", "x"), 0))
		assert.True(t, transport.IsCode(o.err, "NOSCRIPT"))
		o = do(t, m, command("GET", "x"))
		assert.True(t, transport.IsCode(o.err, "NOSCRIPT"), "a command cannot be resent with a script's source")
		assert.Len(t, p.commands(), 3)
	})
}

func TestUnknownScriptIsResentOnNextConnection(t *testing.T) {
	onPeer(t, newPeer().answer(map[string]string{"EVALSHA": silence, "EVAL": ":7\r\n"}), func(p *peer, m *mux.Mux) {
		t := p.t
		g := p.gate()
		c := eval(transport.NewScript("s", "x"), 0)
		came := start(m, c)
		synctest.Wait()
		close(g.armed)
		stuck := start(m, command("ECHO", "keeps the writer at the gate"))
		synctest.Wait()
		p.Say(1, noScript+hangUp)
		synctest.Wait()
		close(g.gate)
		assert.ErrorIs(t, await(t, stuck).err, transport.ErrUncertain)
		assert.Equal(t, outcome{int64(7), nil}, await(t, came))
		assert.Equal(t, int64(102), c.Conn())
	})
}

func TestUnknownScriptIsNotResentForAbandonedCall(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before the answer", "after the answer"} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer().answer(map[string]string{"EVALSHA": silence})
			g := p.gate()
			m := open(t, p.config())
			c := eval(transport.NewScript("s", "x"), 0)
			came := start(m, c)
			synctest.Wait()
			close(g.armed)
			start(m, command("ECHO", "keeps the writer at the gate"))
			synctest.Wait()
			if when == "before the answer" {
				require.False(t, c.Abandon())
			}
			p.Say(1, noScript)
			synctest.Wait()
			if when == "after the answer" {
				none(t, came)
				require.False(t, c.Abandon())
			}
			close(g.gate)
			assert.ErrorIs(t, await(t, came).err, transport.ErrNotSent, when)
			synctest.Wait()
			assert.NotContains(t, strings.Join(p.commands(), "|"), "EVAL x")
		})
	}
}

func redirect(m *mux.Mux, c *transport.Call, asking bool) <-chan outcome {
	came := make(chan outcome, 2)
	done := func(reply any, err error) { came <- outcome{reply, err} }
	if asking {
		m.Ask(c, done)
	} else {
		m.Start(c, done)
	}
	return came
}

func TestRedirectedCallIsSentAfterAsking(t *testing.T) {
	onPeer(t, newPeer().answer(map[string]string{"EVALSHA": noScript, "EVAL": ":7\r\n", "ASKING": ok, "GET": ":1\r\n"}), func(p *peer, m *mux.Mux) {
		t := p.t
		s := transport.NewScript("s", "return 7")
		assert.Equal(t, outcome{int64(7), nil}, await(t, redirect(m, eval(s, 0), true)))
		assert.Equal(t, outcome{int64(1), nil}, await(t, redirect(m, command("GET"), false)))
		assert.Equal(t, []string{
			"ASKING", "EVALSHA " + s.SHA() + " 0", "ASKING", "EVAL return 7 0", "GET",
		}, p.commands())
	})
}

func TestAbandonedRedirectedCallIsNotSent(t *testing.T) {
	t.Parallel()
	for _, asking := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer()
			m := open(t, p.config())
			left := command("LEFT")
			require.True(t, left.Claim(1), "sent to another server")
			require.False(t, left.Abandon())
			came := redirect(m, left, asking)
			assert.ErrorIs(t, await(t, came).err, transport.ErrNotSent)
			require.NoError(t, do(t, m, command("OTHER")).err)
			assert.Equal(t, []string{"OTHER"}, p.commands())
			synctest.Wait()
			none(t, came)
		})
	}
}

func TestTaggedMuxNamesItsConnections(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const tag = 5 << 36
		p := newPeer()
		cfg := p.config()
		cfg.Tag = tag
		m := open(t, cfg)
		c := command("BREAK")
		p.on(func(_ int, args []string) (string, bool) {
			switch {
			case args[0] == "BREAK":
				return hangUp, true
			case args[0] == "CLIENT" && args[1] == "KILL":
				return ":1\r\n", true
			}
			return "", false
		})
		require.ErrorIs(t, do(t, m, c).err, transport.ErrUncertain)
		assert.Equal(t, int64(tag|101), c.Conn())
		require.NoError(t, m.Fence(t.Context(), c))
		assert.Equal(t, []string{"BREAK", killOld}, p.commands(), "the server knows the id alone")
		foreign := command("PING")
		foreign.Claim(101)
		require.Error(t, m.Fence(t.Context(), foreign), "another server's 101")
	})
}

// The second call of a batch cannot be written. Earlier calls are lost in a buffer; later ones go to the next
// connection, in order.
func TestMidBatchFailureLeavesUnwrittenCallsCertain(t *testing.T) {
	t.Parallel()
	noSpace := errors.New("write: no space")
	for name, trouble := range map[string]func(p *peer, h *hooked) error{
		"the write fails": func(*peer, *hooked) error { return noSpace },
		"the reader finds the connection broken": func(p *peer, h *hooked) error {
			p.Say(1, hangUp)
			<-h.closed
			return nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer()
			before := func(h *hooked, args []any) error {
				if len(args) == 1 && args[0] == "2" {
					synctest.Wait() // the peer has read the first call
					return trouble(p, h)
				}
				return nil
			}
			g := p.gate()
			gate := p.wrap
			p.wrap = func(c redis.Conn) redis.Conn {
				inner, _ := gate(c).(redis.ConnWithTimeout)
				return &hooked{ConnWithTimeout: inner, before: before, closed: make(chan struct{})}
			}
			m := open(t, p.config())
			require.NoError(t, mux.Ping(t.Context(), m))
			close(g.armed)
			start(m, command("ECHO", "0"))
			synctest.Wait() // the writer is at the gate
			var came []<-chan outcome
			for _, n := range []string{"1", "2", "3", "4", "5"} {
				came = append(came, start(m, command("ECHO", n)))
			}
			close(g.gate)
			for i, c := range came {
				if i < 2 {
					assert.ErrorIs(t, await(t, c).err, transport.ErrUncertain, name)
				} else {
					assert.NoError(t, await(t, c).err, name)
				}
			}
			assert.Equal(t, []string{"ECHO 0", "ECHO 3", "ECHO 4", "ECHO 5"}, p.commands(), name)
		})
	}
}
