package mux_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/gomodule/redigo/redis"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

// A batch of four calls, in which the second meets trouble while it is written:
// what was written before it is lost in a buffer, what comes after it must go to
// the next connection, in order.
func TestTroubleInTheMiddleOfABatchMakesNoUnwrittenCallUncertain(t *testing.T) {
	t.Parallel()
	noSpace := errors.New("write: no space")
	for name, trouble := range map[string]func(p *peer, h *hooked) error{
		"the write fails": func(*peer, *hooked) error { return noSpace },
		"the reader finds the connection broken": func(p *peer, h *hooked) error {
			p.say(1, hangUp)
			<-h.closed
			return nil
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &peer{}
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
