package mux_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/internal/test/redistest"
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
