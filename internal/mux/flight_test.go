package mux_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/internal/mux"
	"github.com/redlatch/redlatch/transport"
)

// manyCalls is larger than the maximum number of calls in flight.
const manyCalls = 3000

// stuck returns a Mux with manyCalls calls that are not answered.
func stuck(t *testing.T) (m *mux.Mux, p *peer, all []*transport.Call, came []<-chan outcome) {
	t.Helper()
	p = newPeer().answer(map[string]string{"SLOW": silence})
	m = open(t, p.config())
	require.NoError(t, mux.Ping(t.Context(), m))
	for range manyCalls {
		c := command("SLOW")
		all = append(all, c)
		came = append(came, start(m, c))
	}
	synctest.Wait()
	return m, p, all, came
}

// sent counts the calls that were sent.
func sent(calls []*transport.Call) int {
	n := 0
	for _, c := range calls {
		if c.Conn() != 0 {
			n++
		}
	}
	return n
}

// answers makes the peer answer n calls, but no faster than further calls are sent.
func answers(p *peer, n int) {
	for i := range n {
		p.Say(1, ok)
		if i%256 == 255 {
			synctest.Wait()
		}
	}
}

func TestInFlightCallsAreLimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, p, all, came := stuck(t)
		require.Equal(t, 1024, sent(all))
		p.Say(1, hangUp)
		for i, c := range all[:1024] {
			require.ErrorIs(t, await(t, came[i]).err, transport.ErrUncertain)
			require.NotZero(t, c.Conn())
		}
		synctest.Wait()
		require.Equal(t, 2048, sent(all), "the next ones go to the next connection")
	})
}

func TestCallBehindFullFlightCanBeWithdrawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, p, all, came := stuck(t)
		require.True(t, all[manyCalls-1].Abandon())
		require.False(t, all[0].Abandon())
		answers(p, manyCalls-1)
		require.NoError(t, await(t, came[manyCalls-2]).err)
		assert.Equal(t, transport.ErrNotSent, await(t, came[manyCalls-1]).err)
		assert.Equal(t, manyCalls-1, sent(all))
	})
}

func TestUrgentCallBypassesFullFlight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p, all, came := stuck(t)
		urgent := command("SLOW")
		urgent.Urgent = true
		overtaker := start(m, urgent)
		synctest.Wait()
		require.NotZero(t, urgent.Conn())
		require.Equal(t, 1024, sent(all), "and no other")
		for range 1025 {
			p.Say(1, ok)
		}
		require.NoError(t, await(t, overtaker).err)
		none(t, came[manyCalls-1])
	})
}

func TestVitalCallBypassesFlightFullOfUrgentCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, p, _, _ := stuck(t)
		var all []*transport.Call
		for range manyCalls {
			c := command("SLOW")
			c.Urgent = true
			all = append(all, c)
			start(m, c)
		}
		synctest.Wait()
		require.Equal(t, 1024, sent(all), "with as many ordinary calls")
		vital := command("SLOW")
		vital.Urgent, vital.Vital = true, true
		came := start(m, vital)
		synctest.Wait()
		require.NotZero(t, vital.Conn())
		for range 2 * 1024 {
			p.Say(1, ok)
		}
		synctest.Wait()
		none(t, came)
		p.Say(1, ok)
		require.NoError(t, await(t, came).err)
		require.Greater(t, sent(all), 1024, "the others follow")
	})
}

func TestFlightRefillsAfterQuarterOfReplies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, p, all, came := stuck(t)
		for range 255 {
			p.Say(1, ok)
		}
		synctest.Wait()
		require.Equal(t, 1024, sent(all))
		p.Say(1, ok)
		synctest.Wait()
		require.Equal(t, 1024+256, sent(all))
		answers(p, manyCalls-256)
		for _, c := range came {
			require.NoError(t, await(t, c).err)
		}
	})
}
