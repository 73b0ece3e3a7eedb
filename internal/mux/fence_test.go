package mux_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

const killOld = "CLIENT KILL ID 101 ADDR 10.0.0.1:1"

// doubtful returns a Mux connected to p, and a call in doubt whose connection broke.
func doubtful(t *testing.T, p *peer, kill string) (*mux.Mux, *transport.Call) {
	t.Helper()
	p.on(func(_ int, args []string) (string, bool) {
		switch {
		case args[0] == "BREAK":
			return hangUp, true
		case args[0] == "CLIENT" && args[1] == "KILL":
			return kill, true
		}
		return "", false
	})
	m := open(t, p.config())
	c := command("BREAK")
	require.ErrorIs(t, do(t, m, c).err, transport.ErrUncertain)
	return m, c
}

func TestFenceKillsFormerConnection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reply  string
		fenced bool
		asks   int // commands for three fences
	}{
		{":1\r\n", true, 3},
		{":0\r\n", true, 3},
		{"-ERR No such client\r\n", true, 3},
		{ok, true, 3},
		{"-BUSY a script runs\r\n", false, 3},
		{"-NOPERM no\r\n", false, 1},
		{"-ERR unknown command 'CLIENT'\r\n", false, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPeer()
			m, call := doubtful(t, p, c.reply)
			for range 3 {
				require.Equal(t, c.fenced, m.Fence(t.Context(), call) == nil, c.reply)
			}
			assert.Equal(t, append([]string{"BREAK"}, slices.Repeat([]string{killOld}, c.asks)...), p.commands(), c.reply)
		})
	}
}

func TestFenceOnLiveConnectionWaitsAndKillsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPeer()
		held := false // from the first SLOW on
		p.on(func(_ int, args []string) (string, bool) {
			held = held || args[0] == "SLOW"
			return silence, held && (args[0] == "SLOW" || args[0] == "PING")
		})
		m := open(t, p.config())
		c := command("SLOW")
		late := start(m, c)
		synctest.Wait()
		require.False(t, c.Abandon())
		fenced := make(chan error, 1)
		go func() { fenced <- m.Fence(t.Context(), c) }()
		synctest.Wait()
		assert.Empty(t, fenced)
		p.Say(1, ok+"+PONG\r\n")
		require.NoError(t, <-fenced)
		require.NoError(t, await(t, late).err)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.ErrorIs(t, m.Fence(ctx, c), context.DeadlineExceeded, "a missing reply proves nothing")
		assert.Equal(t, []string{"SLOW"}, p.commands())
	})
}

func TestFenceKillsConnectionThatBreaksDuringFence(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPeer()
		sent := false
		p.on(func(conn int, args []string) (string, bool) {
			switch {
			case args[0] == "SLOW":
				sent = true
				return silence, true
			case args[0] == "CLIENT" && args[1] == "KILL":
				return ":1\r\n", true
			}
			return hangUp, conn == 1 && args[0] == "PING" && sent
		})
		m := open(t, p.config())
		c := command("SLOW")
		start(m, c)
		synctest.Wait()
		require.False(t, c.Abandon())
		require.NoError(t, m.Fence(t.Context(), c))
		assert.Equal(t, []string{"SLOW", killOld}, p.commands())
	})
}

func TestFenceIgnoresAnswersOnNextConnection(t *testing.T) {
	onPeer(t, newPeer().answer(map[string]string{"SLOW": silence}), func(p *peer, m *mux.Mux) {
		t := p.t
		g := p.gate()
		c := command("SLOW")
		start(m, c)
		synctest.Wait()
		require.False(t, c.Abandon())
		close(g.armed)
		start(m, command("ECHO", "keeps the writer at the gate"))
		synctest.Wait()
		fenced := make(chan error, 1)
		go func() { fenced <- m.Fence(t.Context(), c) }()
		synctest.Wait() // its PING is queued
		p.Say(1, hangUp)
		synctest.Wait()
		close(g.gate)
		require.NoError(t, <-fenced)
		assert.Equal(t, []string{"SLOW", killOld}, p.commands())
	})
}

func TestFenceOfUnsentCallFails(t *testing.T) {
	onPeer(t, newPeer(), func(p *peer, m *mux.Mux) {
		t := p.t
		require.NoError(t, mux.Ping(t.Context(), m))
		c := command("ECHO", "x")
		require.Error(t, m.Fence(t.Context(), c))
		c.Claim(4711)
		require.Error(t, m.Fence(t.Context(), c))
		assert.Empty(t, p.commands())
	})
}
