package mux_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

func TestServerThatIsNotReadyIsADialError(t *testing.T) {
	t.Parallel()
	for _, refusal := range []string{"NOAUTH Authentication required.", "LOADING Redis is loading"} {
		synctest.Test(t, func(t *testing.T) {
			p := (&peer{}).answer(map[string]string{"PING": "-" + refusal + "\r\n"})
			m := open(t, p.config())
			err := mux.Ping(t.Context(), m)
			require.ErrorIs(t, err, transport.ErrNotSent)
			require.ErrorIs(t, err, redis.Error(refusal))
			assert.ErrorIs(t, do(t, m, command("ECHO", "x")).err, transport.ErrNotSent)
			assert.Empty(t, p.commands())
		})
	}
}

// A server without room for the client says so, and hangs up.
func TestServerThatHangsUpHasSaidWhy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const refusal = "ERR max number of clients reached"
		m := open(t, (&peer{}).answer(map[string]string{"PING": "-" + refusal + "\r\n" + hangUp}).config())
		err := mux.Ping(t.Context(), m)
		require.ErrorIs(t, err, transport.ErrNotSent)
		require.ErrorIs(t, err, redis.Error(refusal))
	})
}

func TestServerThatForbidsPingAndClientIsUsedAllTheSame(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		noperm := "-NOPERM this user has no permissions\r\n"
		p := (&peer{}).answer(map[string]string{"PING": noperm, "CLIENT": noperm})
		m := open(t, p.config())
		require.NoError(t, mux.Ping(t.Context(), m))
		c := command("ECHO", "x")
		require.NoError(t, do(t, m, c).err)
		assert.Zero(t, c.Conn())
		assert.Error(t, m.Fence(t.Context(), c), "it is unknown what to kill")
	})
}

type bareConn struct{ redis.Conn }

func TestDialMustReturnAConnectionThatCanWaitForReplies(t *testing.T) {
	onPeer(t, &peer{wrap: func(c redis.Conn) redis.Conn { return bareConn{c} }}, func(t *testing.T, p *peer, m *mux.Mux) {
		err := mux.Ping(t.Context(), m)
		require.ErrorIs(t, err, transport.ErrNotSent)
		require.ErrorContains(t, err, "mux_test.bareConn")

		nothing := func(context.Context) (redis.Conn, error) { return nil, nil } //nolint:nilnil // the mistake
		assert.ErrorIs(t, mux.Ping(t.Context(), open(t, mux.Config{Dial: nothing})), transport.ErrNotSent)
	})
	assert.Panics(t, func() { mux.New(mux.Config{}) })
}
