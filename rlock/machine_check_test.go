package rlock_test

import (
	"strconv"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/redlatch/redlatch"
)

// check compares the package and the server with the model.
func (m *machine) check(rt *rapid.T) {
	synctest.Wait()
	if now := time.Now(); now.After(m.now) {
		m.advance(now)
	}
	for _, h := range m.holds {
		if h.end != nil || h.doomed.IsZero() {
			m.checkEnd(rt, h)
		}
		if end := h.real.Err(); end != nil {
			require.Zero(rt, h.real.Remaining())
		}
	}
	require.True(rt, m.resolve(), "a hold that the server has forgotten does not learn of it")
	synctest.Wait() // for what that set off
	m.checkServer(rt)
	m.loose = false
}

// checkEnd compares how a hold has ended. The model does not know the reason of a loss.
func (m *machine) checkEnd(rt *rapid.T, h *mHold) {
	if end := h.real.Err(); h.end == redlatch.ErrLost { //nolint:errorlint // exactly this
		var why redlatch.Loss
		require.ErrorAs(rt, end, &why)
	} else {
		require.Equal(rt, h.end, end)
	}
}

func (m *machine) checkServer(rt *rapid.T) {
	have := owners(m.t, m.srv, "lock")
	left := ttl(m.t, m.srv, "lock")
	if len(have) == 0 {
		require.False(rt, m.live(), "the server has lost a lock that is held")
		if m.server.owner != "" {
			require.True(rt, m.loose, "it was freed before its time")
			m.free()
		}
		return
	}
	require.Equal(rt, map[string]string{m.server.owner: strconv.FormatInt(m.server.count, 10)}, have)
	require.Positive(rt, left)
	require.LessOrEqual(rt, left, m.server.longest)
	for _, h := range m.holds {
		if h.end == nil && m.onServer(h.ownership) {
			require.GreaterOrEqual(rt, left, h.real.Remaining(), "a hold counts on more than the server gives")
		}
	}
	m.server.exp = m.now.Add(left)
}

// checkRest holds that an unlock leaves exactly what the holds that remain are
// owed.
func (m *machine) checkRest(rt *rapid.T, t *mOwnership, before int64) {
	if !m.onServer(t) || m.server.count == before || t.shared {
		return
	}
	var owed time.Duration
	for _, h := range t.holds {
		switch {
		case h.end != nil:
			return // it has reached its maximum
		case h.fixed:
			owed = max(owed, h.lossAt.Add(min(h.lease/10, time.Second)).Sub(m.now))
		default:
			owed = max(owed, h.lease)
		}
	}
	require.Equal(rt, owed, ttl(m.t, m.srv, "lock"))
}
