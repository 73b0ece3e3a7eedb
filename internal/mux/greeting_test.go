package mux_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/test/redistest"
	"github.com/redlatch/redlatch/transport"
)

func TestUnreadyServerFailsDial(t *testing.T) {
	t.Parallel()
	for refusal, end := range map[string]string{
		"NOAUTH Authentication required.": "", "LOADING Redis is loading": "", "ERR max number of clients reached": hangUp,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer().answer(map[string]string{"PING": "-" + refusal + "\r\n" + end})
			m := open(t, p.config())
			err := mux.Ping(t.Context(), m)
			require.ErrorIs(t, err, transport.ErrNotSent)
			require.ErrorIs(t, err, redis.Error(refusal))
			assert.ErrorIs(t, do(t, m, command("ECHO", "x")).err, transport.ErrNotSent)
			assert.Empty(t, p.commands())
		})
	}
}

func TestServerWithoutPingAndClientRightsIsUsed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		noperm := "-NOPERM this user has no permissions\r\n"
		p := newPeer().answer(map[string]string{"PING": noperm, "CLIENT": noperm})
		m := open(t, p.config())
		require.NoError(t, mux.Ping(t.Context(), m))
		c := command("ECHO", "x")
		require.NoError(t, do(t, m, c).err)
		assert.Zero(t, c.Conn())
		assert.Error(t, m.Fence(t.Context(), c), "it is unknown what to kill")
	})
}

type bareConn struct{ redis.Conn }

func TestDialRejectsConnectionWithoutReplyTimeouts(t *testing.T) {
	p := newPeer()
	p.wrap = func(c redis.Conn) redis.Conn { return bareConn{c} }
	onPeer(t, p, func(p *peer, m *mux.Mux) {
		t := p.t
		err := mux.Ping(t.Context(), m)
		require.ErrorIs(t, err, transport.ErrNotSent)
		require.ErrorContains(t, err, "mux_test.bareConn")

		nothing := func(context.Context) (redis.Conn, error) { return nil, nil } //nolint:nilnil // the mistake
		assert.ErrorIs(t, mux.Ping(t.Context(), open(t, mux.Config{Dial: nothing})), transport.ErrNotSent)
	})
	assert.Panics(t, func() { mux.New(mux.Config{}) })
}

func TestMissingFenceRightIsLoggedOnce(t *testing.T) {
	t.Parallel()
	const noperm = "-NOPERM this user has no permissions\r\n"
	for right, c := range map[string]struct {
		refused string // the subcommand of CLIENT
		kills   bool
	}{
		"+client|id":   {"ID", false},
		"+client|info": {"INFO", true},
		"+client|kill": {"KILL", false},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer()
			p.on(func(_ int, args []string) (string, bool) {
				switch {
				case args[0] == "BREAK":
					return hangUp, true
				case args[0] == "CLIENT" && args[1] == c.refused:
					return noperm, true
				case args[0] == "CLIENT" && args[1] == "KILL":
					return ":1\r\n", true
				}
				return "", false
			})
			log, logger := redistest.NewJournal()
			cfg := p.config()
			cfg.Logger = logger
			m := open(t, cfg)
			require.NoError(t, mux.Ping(t.Context(), m))
			require.Empty(t, log.Lines("right="), "no call is in doubt yet")
			for range 3 {
				require.NoError(t, do(t, m, command("ECHO", "x")).err)
				broken := command("BREAK")
				require.ErrorIs(t, do(t, m, broken).err, transport.ErrUncertain)
				assert.Equal(t, c.kills, m.Fence(t.Context(), broken) == nil)
			}
			require.Len(t, log.Lines("level=WARN", "right="), 3+1, "three broken connections, and this")
			require.Len(t, log.Lines("right="+right), 1)
		})
	}
}

// oddities are replies that no server sends to the commands of a Mux.
var oddities = []string{
	":0\r\n", ":-1\r\n", ":9223372036854775807\r\n", "+OK\r\n", "$-1\r\n", "*-1\r\n", "*0\r\n", "$0\r\n\r\n", "$5\r\naddr=\r\n",
	redistest.Bulk("id=x addr= addr=\x00 =\n\r"), redistest.Bulk(strings.Repeat("addr=", 1<<18)), "*2\r\n$1\r\na\r\n*1\r\n:1\r\n", "-\r\n", "-ERR \xff\r\n",
	strings.Repeat("*1\r\n", 1000) + ":1\r\n",
}

func TestOddGreetingsAreTolerated(t *testing.T) {
	t.Parallel()
	for _, odd := range oddities {
		for _, command := range []string{"PING", "CLIENT"} {
			if command == "PING" && strings.HasPrefix(odd, "-") {
				continue // that is a refusal
			}
			synctest.Test(t, func(t *testing.T) {
				m := open(t, newPeer().answer(map[string]string{command: odd}).config())
				require.NoError(t, mux.Ping(t.Context(), m))
				c := transport.NewScript("s", "x")
				call := eval(c, 0)
				require.NoError(t, do(t, m, call).err)
				_ = m.Fence(t.Context(), call) // any text that it sends
			})
		}
	}
}

func TestBrokenReplyMakesCallUncertainAndReconnects(t *testing.T) {
	t.Parallel()
	for _, noise := range []string{
		"HTTP/1.1 400 Bad Request\r\n\r\n", "\r\n", "\n", "$x\r\n", "$-2\r\n", ":\r\n", ":1x\r\n", "%1\r\n", "$1\r\nabc\r\n", "*2\r\n:1\r\n?\r\n",
		"$99999999999999999999\r\n", "*99999999999999999999\r\n", "+OK\n",
		"$10\r\nabc" + hangUp, "*2\r\n:1\r\n" + hangUp, ":1" + hangUp, "-ER" + hangUp, "+O" + hangUp, "*1\r\n$1\r\n" + hangUp,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer()
			p.on(func(conn int, args []string) (string, bool) { return noise, conn == 1 && args[0] == "GET" })
			m := open(t, p.config())
			began := time.Now()
			require.ErrorIs(t, do(t, m, command("GET", "x")).err, transport.ErrUncertain, "%q", noise)
			require.NoError(t, do(t, m, command("GET", "x")).err, "%q", noise)
			assert.Less(t, time.Since(began), time.Second)
			assert.Equal(t, 2, p.dialed())
		})
	}
}
