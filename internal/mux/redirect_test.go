package mux_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

// redirect hands over a call that another server has refused.
func redirect(m *mux.Mux, c *transport.Call, asking bool) <-chan outcome {
	came := make(chan outcome, 2)
	m.Redirect(c, func(reply any, err error) { came <- outcome{reply, err} }, asking)
	return came
}

func TestARedirectedCallIsSentBehindAskingWhereThatIsWanted(t *testing.T) {
	onPeer(t, (&peer{}).answer(map[string]string{"EVALSHA": noScript, "EVAL": ":7\r\n", "ASKING": ok, "GET": ":1\r\n"}), func(t *testing.T, p *peer, m *mux.Mux) {
		s := transport.NewScript("s", "return 7")
		assert.Equal(t, outcome{int64(7), nil}, await(t, redirect(m, eval(s, 0), true)))
		assert.Equal(t, outcome{int64(1), nil}, await(t, redirect(m, command("GET"), false)))
		assert.Equal(t, []string{
			"ASKING", "EVALSHA " + s.SHA() + " 0", "ASKING", "EVAL return 7 0", "GET",
		}, p.commands())
	})
}

func TestARedirectedCallIsNotSentForACallerThatHasLeft(t *testing.T) {
	t.Parallel()
	for _, asking := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{}
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

func TestConnectionsOfATaggedMuxHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const tag = 5 << 36
		p := &peer{}
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
