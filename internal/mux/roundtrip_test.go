package mux_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

type starter func(call *transport.Call, done transport.Done)

func (s starter) Start(call *transport.Call, done transport.Done) { s(call, done) }

var errWhy = errors.New("why")

func TestContextErrorStatesWhetherCallWasSent(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		sent  bool
		class error
	}{
		"queued": {false, transport.ErrNotSent},
		"sent":   {true, transport.ErrUncertain},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			call := &transport.Call{Command: "GET"}
			_, err := mux.Do(ctx, starter(func(call *transport.Call, _ transport.Done) {
				if c.sent {
					assert.True(t, call.Claim(1))
				}
				cancel(errWhy)
			}), call)
			require.ErrorIs(t, err, c.class)
			require.ErrorIs(t, err, errWhy)
			assert.Equal(t, c.sent, call.Claim(2), "a call that was not sent is withdrawn")
			assert.Equal(t, c.sent, call.Abandoned())
		})
	}
}

func TestArrivedOutcomeOverridesContextError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	p := mux.Begin(starter(func(_ *transport.Call, done transport.Done) { done("OK", nil) }), &transport.Call{Command: "GET"})
	cancel()
	reply, err := p.Wait(ctx)
	require.NoError(t, err)
	assert.Equal(t, "OK", reply)
	assert.Equal(t, "GET", p.Name())
}

func TestRejectedPingCountsAsAnswer(t *testing.T) {
	t.Parallel()
	for text, answered := range map[string]bool{"": true, "NOPERM no ping": true, "LOADING for now": false} {
		err := mux.Ping(t.Context(), starter(func(call *transport.Call, done transport.Done) {
			assert.Equal(t, "PING", call.Name())
			assert.True(t, call.Urgent)
			if text == "" {
				done("PONG", nil)
				return
			}
			done(nil, &transport.ServerError{Text: text})
		}))
		assert.Equal(t, answered, err == nil, text)
	}
}
