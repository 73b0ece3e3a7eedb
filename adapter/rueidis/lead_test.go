package rueidis_test

import (
	"testing"
	"time"

	"github.com/redlatch/redlatch/internal/test/locksuite"
	"github.com/redlatch/redlatch/internal/test/redistest"
)

// Connections of a rueidis client itself have no socket to read from: see New.
func TestCallerThatIsAloneReadsOnConnectionsOfDialer(t *testing.T) {
	t.Parallel()
	locksuite.Leads(t, overSentinels(t, sentinels(redistest.StartSentinels(t, time.Minute))))
}
