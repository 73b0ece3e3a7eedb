package locksuite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/redlatch/redlatch/transport"
)

// patient is a transport.Caller that waits.
type patient struct{}

// Started is part of transport.Caller.
func (patient) Started() {}

// Waits is part of transport.Caller.
func (patient) Waits() bool { return true }

// Leads holds that a caller that is alone reads its own replies: it has them when Lead
// returns. It closes the transport.
func Leads(t *testing.T, tr transport.Transport) {
	t.Helper()
	defer func() { require.NoError(t, tr.Close()) }()
	l, ok := tr.(transport.Leader)
	require.True(t, ok)
	require.True(t, l.Leads(tr))
	led := 0
	for limit := time.Now().Add(20 * time.Second); led < 5 && time.Now().Before(limit); {
		came := make(chan error, 1)
		call := &transport.Call{Command: "GET", Args: []any{"lead"}, NumKeys: 1}
		l.Lead(t.Context(), call, func(_ any, err error) { came <- err }, patient{})
		led += len(came)
		require.NoError(t, <-came)
	}
	require.Equal(t, 5, led)
}
