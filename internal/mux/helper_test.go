package mux_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits, mostly on fake time.
const patience = 20 * time.Second

type outcome struct {
	reply any
	err   error
}

// open returns a Mux that is closed when the test ends.
func open(tb testing.TB, cfg mux.Config) *mux.Mux {
	tb.Helper()
	m := mux.New(cfg)
	tb.Cleanup(func() { require.NoError(tb, m.Close()) })
	return m
}

// onPeer runs body in a synctest bubble, with a Mux connected to p.
func onPeer(t *testing.T, p *peer, body func(p *peer, m *mux.Mux)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p.t = t
		body(p, open(t, p.config()))
	})
}

// onLed is like onPeer, with a Mux whose next caller reads its own reply.
func onLed(t *testing.T, p *peer, body func(p *peer, m *mux.Mux)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p.t = t
		body(p, ledBy(t, p))
	})
}

func command(name string, args ...any) *transport.Call {
	return &transport.Call{Command: name, Args: args}
}

func eval(s *transport.Script, keys int, args ...any) *transport.Call {
	return &transport.Call{Script: s, NumKeys: keys, Args: args}
}

// start starts a call and returns a channel for its outcome. The channel has room for an erroneous
// second outcome.
func start(m *mux.Mux, c *transport.Call) <-chan outcome {
	came := make(chan outcome, 2)
	m.Start(c, func(reply any, err error) { came <- outcome{reply, err} })
	return came
}

func await(tb testing.TB, came <-chan outcome) outcome {
	tb.Helper()
	select {
	case o := <-came:
		return o
	case <-time.After(patience):
		require.FailNow(tb, "done has not run")
		return outcome{}
	}
}

func do(tb testing.TB, m *mux.Mux, c *transport.Call) outcome {
	tb.Helper()
	return await(tb, start(m, c))
}

// none requires that a call has not ended.
func none(tb testing.TB, came <-chan outcome) {
	tb.Helper()
	select {
	case o := <-came:
		tb.Fatalf("done ran too early: %v", o)
	default:
	}
}
