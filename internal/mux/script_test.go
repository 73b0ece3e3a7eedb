package mux_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

const noScript = "-NOSCRIPT no such script here\r\n"

func TestUnknownScriptIsRepeatedWithItsText(t *testing.T) {
	onPeer(t, (&peer{}).answer(map[string]string{"EVALSHA": noScript, "EVAL": ":7\r\n"}), func(t *testing.T, p *peer, m *mux.Mux) {
		s := transport.NewScript("s", "return 7")
		came := start(m, eval(s, 1, "k", "a", 5, int64(6)))
		assert.Equal(t, outcome{int64(7), nil}, await(t, came))
		assert.Equal(t, []string{"EVALSHA " + s.SHA() + " 1 k a 5 6", "EVAL return 7 1 k a 5 6"}, p.commands())
		synctest.Wait()
		none(t, came)
	})
}

func TestUnknownScriptIsRepeatedOnceOnly(t *testing.T) {
	onPeer(t, (&peer{}).answer(map[string]string{"EVALSHA": noScript, "EVAL": noScript, "GET": noScript}), func(t *testing.T, p *peer, m *mux.Mux) {
		o := do(t, m, eval(transport.NewScript("s", "x"), 0))
		assert.True(t, transport.IsCode(o.err, "NOSCRIPT"))
		o = do(t, m, command("GET", "x"))
		assert.True(t, transport.IsCode(o.err, "NOSCRIPT"), "a command has no text to repeat it with")
		assert.Len(t, p.commands(), 3)
	})
}

func TestUnknownScriptIsRepeatedOnTheNextConnectionWhenThisOneBreaks(t *testing.T) {
	onPeer(t, (&peer{}).answer(map[string]string{"EVALSHA": silence, "EVAL": ":7\r\n"}), func(t *testing.T, p *peer, m *mux.Mux) {
		g := p.gate()
		c := eval(transport.NewScript("s", "x"), 0)
		came := start(m, c)
		synctest.Wait()
		close(g.armed)
		stuck := start(m, command("ECHO", "keeps the writer at the gate"))
		synctest.Wait()
		p.say(1, noScript+hangUp)
		synctest.Wait()
		close(g.gate)
		assert.ErrorIs(t, await(t, stuck).err, transport.ErrUncertain)
		assert.Equal(t, outcome{int64(7), nil}, await(t, came))
		assert.Equal(t, int64(102), c.Conn())
	})
}

func TestUnknownScriptIsNotRepeatedForACallerThatHasLeft(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"before the answer", "after the answer"} {
		synctest.Test(t, func(t *testing.T) {
			p := (&peer{}).answer(map[string]string{"EVALSHA": silence})
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
			p.say(1, noScript)
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
